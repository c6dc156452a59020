"""Where a client comes in: straight to its connection, or through a TLS handshake first.

A handshake that fails, or never ends, costs a counter and nothing else; who speaks plain HTTP is told so in
the clear. The certificate is that of the moment a client knocks; those that are in keep theirs.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from http import HTTPStatus
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from service import tls
from service.proxy.config import ListenerTls
from service.proxy.http.errors import Refusal, refusal_bytes
from service.proxy.processes.descriptors import descriptors, places
from service.proxy.processes.seats import Seats, TurnedAway
from service.proxy.traffic.downstream import LINGER_SECONDS, ClientConnection

if TYPE_CHECKING:
    from service.proxy.traffic.plane import DataPlane

MOST_HANDSHAKES = 512
"""At once; one more ends the oldest, which is the least likely to get anywhere."""
FLUSH_LOOK_SECONDS = 0.05
"""Between two looks at whether a slow client has taken the last of its answer."""

PLAIN_HTTP = Refusal(
    status=HTTPStatus.BAD_REQUEST,
    code="plain_http",
    message="This is plain HTTP, and the port speaks TLS: the address begins with https://.",
)
_METHOD = re.compile(rb"[A-Z]{1,20}(?: |\Z)")
"""What a request begins with; no message of TLS begins with a letter."""
_NO_CERTIFICATE = ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "CERTIFICATE_VERIFY_FAILED")


class Entrance:
    """The protocol factory of a process's listener."""

    def __init__(self, plane: DataPlane, settings: ListenerTls | None) -> None:
        self.plane = plane
        self.context: ssl.SSLContext | None = None
        self._handshakes: dict[Handshake, None] = {}
        self._seats = Seats(lambda: chain(self.plane.clients, self._handshakes))
        for outcome in ("closed", "refused"):
            plane.meters.counters["clients_crowded_out", (("outcome", outcome),)] += 0
        self.limit()
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

    def limit(self) -> None:
        """Take as many clients as the plane's configuration says, from the next one on."""
        self._places = places(self.plane.config.clients.connections, descriptors())
        self.plane.meters.gauges["client_limit", ()] = self._places

    def __call__(self) -> asyncio.Protocol:
        if len(self.plane.clients) + len(self._handshakes) >= self._places:
            has_room = self._seats.make_room()
            self.plane.meters.count("clients_crowded_out", ("outcome", "closed" if has_room else "refused"))
            if not has_room:
                return TurnedAway(self.plane, in_clear=self.context is None)
        return ClientConnection(self.plane) if self.context is None else Handshake(self, self.context)

    def close(self) -> None:
        """End the handshakes under way: who has not got through has asked nothing."""
        for handshake in tuple(self._handshakes):
            handshake.abort()

    def begun(self, handshake: Handshake) -> None:
        if len(self._handshakes) >= MOST_HANDSHAKES:
            oldest = next(iter(self._handshakes))
            del self._handshakes[oldest]
            oldest.end("crowded_out")
        self._handshakes[handshake] = None

    def over(self, handshake: Handshake, outcome: str) -> None:
        self._handshakes.pop(handshake, None)
        self.plane.meters.count("tls_handshakes", ("outcome", outcome))


class Handshake(asyncio.Protocol):
    """A client that has yet to show that it speaks TLS. What it says too early is kept for its connection."""

    _transport: asyncio.Transport
    _deadline: asyncio.TimerHandle

    def __init__(self, entrance: Entrance, context: ssl.SSLContext) -> None:
        self._entrance = entrance
        self._context = context
        self._patience = entrance.plane.config.clients.head
        """Seconds from the client's knock until it is through."""
        self._shaking: asyncio.Task[None] | None = None
        """From the first byte on."""
        self._early: list[bytes] = []
        self._has_ended = False
        self._lost_by: Exception | None = None
        self._client: ClientConnection | None = None
        self._outcome: str | None = None
        """Why we ended it, when it was us."""

    # -- asyncio calls these -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._began = time.monotonic()
        self._entrance.begun(self)
        self._end_after(self._patience, "timeout")

    def data_received(self, received: bytes) -> None:
        if self._outcome is not None:
            return
        if self._shaking is None and _METHOD.match(received):
            self._answer_in_the_clear(received)
            return
        self._early.append(received)
        if self._shaking is None:
            self._shaking = self._entrance.plane.spawn(self._shake())
            # What is read before TLS has taken over is TLS's to read: in this order it takes over, is told
            # that there is a connection, and is handed that, before anything else can be read.
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._pass_on)

    def eof_received(self) -> bool:
        self._has_ended = True
        return False

    def connection_lost(self, error: Exception | None) -> None:
        if self._client is not None:
            self._client.connection_lost(error)
        elif self._shaking is None:
            self._over(self._outcome or "left")
        else:
            self._lost_by = error
            self._shaking.cancel()  # it would wait for one that is gone

    # ----------------------------------------------------------------------------------------------

    def abort(self) -> None:
        self._transport.abort()

    def idle_since(self) -> float | None:
        """Monotonic: since when it is under way; None when it is on its way out."""
        return self._began if self._outcome is None else None

    def make_way(self) -> None:
        """Another client needs the place."""
        self.end("crowded_out")

    def end(self, outcome: str) -> None:
        """End it, unless it has an outcome already: then it is on its way out."""
        self._outcome = self._outcome or outcome
        self._transport.abort()

    def _end_after(self, seconds: float, outcome: str) -> None:
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.end, outcome)

    def _over(self, outcome: str) -> None:
        self._deadline.cancel()
        self._entrance.over(self, outcome)

    def _answer_in_the_clear(self, received: bytes) -> None:
        """Say what is wrong, end our side, and wait a little for the client to end its own."""
        self._outcome = "plain_http"
        self._deadline.cancel()
        self._transport.write(
            refusal_bytes(
                PLAIN_HTTP,
                keep_alive=False,
                body=not received.startswith(b"HEAD "),
                request_id=self._entrance.plane.make_request_id(),
            )
        )
        if not self._transport.is_closing():
            self._transport.write_eof()
        self._end_after(LINGER_SECONDS, "plain_http")

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
                ssl_handshake_timeout=self._patience,  # ours ends sooner
                ssl_shutdown_timeout=LINGER_SECONDS,
            )
        except OSError as error:
            self._lost_by = error
        except asyncio.CancelledError:
            pass  # by `connection_lost`
        if encrypted is None or encrypted.is_closing():
            self._transport.abort()
            self._over(self._outcome or _outcome_of(self._lost_by))
            return
        self._over("done")
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
    if not isinstance(error, ssl.SSLError):
        return "left"
    return "client_certificate" if error.reason in _NO_CERTIFICATE else "failed"
