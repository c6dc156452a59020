"""Where a client comes in: straight to its connection, or through a TLS handshake first.

A handshake that fails, or never ends, costs a counter and nothing else. The certificate is that of the
moment a client knocks; those that are in keep theirs.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any, cast

from service import tls
from service.proxy.config import ListenerTls
from service.proxy.traffic.downstream import LINGER_SECONDS, ClientConnection

if TYPE_CHECKING:
    from service.proxy.traffic.plane import DataPlane

MOST_HANDSHAKES = 512
"""At once; one more ends the oldest, which is the least likely to get anywhere."""
FLUSH_LOOK_SECONDS = 0.05
"""Between two looks at whether a slow client has taken the last of its answer."""

_NO_CERTIFICATE = ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "CERTIFICATE_VERIFY_FAILED")


class Entrance:
    """The protocol factory of a process's listener."""

    def __init__(self, plane: DataPlane, settings: ListenerTls | None) -> None:
        self.plane = plane
        self.context: ssl.SSLContext | None = None
        self._handshakes: dict[Handshake, None] = {}
        self.adopt(settings)

    def adopt(self, settings: ListenerTls | None) -> None:
        """Show this certificate, or speak plain HTTP, from the next client on; raises `TlsUnusable`."""
        self.context = (
            None
            if settings is None
            else tls.listening(
                certificate=settings.certificate, key=settings.key, client_ca=settings.client_ca
            )
        )

    def __call__(self) -> asyncio.Protocol:
        return ClientConnection(self.plane) if self.context is None else Handshake(self, self.context)

    def close(self) -> None:
        """End the handshakes under way: who has not got through has asked nothing."""
        for handshake in tuple(self._handshakes):
            handshake.abort()

    def begun(self, handshake: Handshake) -> None:
        if len(self._handshakes) >= MOST_HANDSHAKES:
            oldest = next(iter(self._handshakes))
            oldest.outcome = "crowded_out"
            oldest.abort()
        self._handshakes[handshake] = None

    def over(self, handshake: Handshake, outcome: str) -> None:
        self._handshakes.pop(handshake, None)
        self.plane.meters.count("tls_handshakes", ("outcome", outcome))


class Handshake(asyncio.Protocol):
    """A client that has yet to show that it speaks TLS. What it says too early is kept for its connection."""

    _transport: asyncio.Transport
    _shaking: asyncio.Task[None]

    def __init__(self, entrance: Entrance, context: ssl.SSLContext) -> None:
        self._entrance = entrance
        self._context = context
        self._early: list[bytes] = []
        self._has_ended = False
        self._lost_by: Exception | None = None
        self._client: ClientConnection | None = None
        self.outcome: str | None = None
        """Why we ended it, when it was us."""

    # -- asyncio calls these -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._entrance.begun(self)
        self._shaking = self._entrance.plane.spawn(self._shake())
        # What is read before TLS has taken over is TLS's to read: in this order it takes over, is told that
        # there is a connection, and is handed that, before anything else can be read.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._pass_on)

    def data_received(self, received: bytes) -> None:
        self._early.append(received)

    def eof_received(self) -> bool:
        self._has_ended = True
        return False

    def connection_lost(self, error: Exception | None) -> None:
        if self._client is not None:
            self._client.connection_lost(error)
        else:
            self._lost_by = error
            self._shaking.cancel()  # it would wait for one that is gone

    # ----------------------------------------------------------------------------------------------

    def abort(self) -> None:
        self._transport.abort()

    def _pass_on(self) -> None:
        received, self._early = b"".join(self._early), []
        if received and not self._transport.is_closing():
            taking = cast(asyncio.BufferedProtocol, self._transport.get_protocol())
            buffer = taking.get_buffer(len(received))
            buffer[: len(received)] = received  # type: ignore[index]
            taking.buffer_updated(len(received))

    async def _shake(self) -> None:
        loop = asyncio.get_running_loop()
        encrypted: asyncio.Transport | None = None
        try:
            encrypted = await loop.start_tls(
                self._transport,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=self._entrance.plane.config.clients.head,
                ssl_shutdown_timeout=LINGER_SECONDS,
            )
        except OSError as error:
            self._lost_by = error
        except asyncio.CancelledError:
            pass  # by `connection_lost`
        if encrypted is None or encrypted.is_closing():
            self._transport.abort()
            self._entrance.over(self, self.outcome or _outcome_of(self._lost_by))
            return
        self._entrance.over(self, "done")
        self._hand_over(encrypted)

    def _hand_over(self, encrypted: asyncio.Transport) -> None:
        client = self._client = ClientConnection(self._entrance.plane)
        encrypted.set_protocol(client)
        client.connection_made(cast(asyncio.Transport, EncryptedTransport(encrypted, self._transport)))
        for received in self._early:
            client.data_received(received)
        self._early.clear()
        if self._has_ended:
            client.eof_received()


class EncryptedTransport:
    """A client's transport under TLS, which also counts what is encrypted and not yet sent.

    The end of a TLS stream is a message of its own, and the loop waits only so long for its answer: all
    that is written must have left before that, or a slow client would lose the end of what it reads.
    """

    __slots__ = ("_encrypted", "_is_ending", "_socket", "abort", "write")

    def __init__(self, encrypted: asyncio.Transport, socket: asyncio.Transport) -> None:
        self._encrypted = encrypted
        self._socket = socket
        self._is_ending = False
        self.write = encrypted.write
        self.abort = encrypted.abort

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encrypted, name)

    def get_write_buffer_size(self) -> int:
        return self._encrypted.get_write_buffer_size() + self._socket.get_write_buffer_size()

    def is_closing(self) -> bool:
        return self._is_ending or self._encrypted.is_closing()

    def close(self) -> None:
        """Say the end once everything before it is out; nothing more is read."""
        if not self._is_ending:
            self._is_ending = True
            self._encrypted.pause_reading()
            self._end_when_sent()

    def _end_when_sent(self) -> None:
        if self._encrypted.is_closing() or self.get_write_buffer_size() == 0:
            self._encrypted.close()
        else:
            asyncio.get_running_loop().call_later(FLUSH_LOOK_SECONDS, self._end_when_sent)


def _outcome_of(error: Exception | None) -> str:
    if isinstance(error, ConnectionAbortedError):  # what the loop calls a handshake that took too long
        return "timeout"
    if not isinstance(error, ssl.SSLError):
        return "left"
    if error.reason == "HTTP_REQUEST":
        return "plain_http"
    return "client_certificate" if error.reason in _NO_CERTIFICATE else "failed"
