"""One request and its answer on the way back: who does what when is decided here, or in `errand`.

A relay is driven from three sides: its backend connection (`received`, `backend_lost`), its client
connection (`client_gone`, `pause`, `resume`) and the clock (`expire`). It ends exactly once.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING

from service.proxy.captures.recorder import Recording
from service.proxy.entry.door import Admission
from service.proxy.http.answer_heads import AnswerHead
from service.proxy.http.answers import AnswerReader, AnswerUnreadable
from service.proxy.http.errors import Refusal, bad_gateway, gateway_timeout, unavailable
from service.proxy.traffic.crowd import Crowd, is_bounded
from service.proxy.traffic.errand import Errand
from service.proxy.traffic.notices import UNREADABLE
from service.proxy.traffic.passage import Phase, overdue
from service.proxy.traffic.servers import Pick
from service.store.redis.capture import Ending

if TYPE_CHECKING:
    from service.proxy.traffic.downstream import ClientConnection
    from service.proxy.traffic.plane import DataPlane


class Relay(Errand):
    """Made by the client connection for one admitted request; `begin` sets it going."""

    # As in `Errand`, most relays never touch these.
    ending: Ending | None = None
    queued_seconds = 0.0
    """It waited for a place at a backend; nothing else counts them."""
    first_byte: float | None = None
    """Monotonic."""
    relay_seconds: float | None = None
    """From the read that completed the answer's head until the client's transport had it."""
    body_bytes = 0
    """Of the answer, without what frames it."""
    is_cut_short = False
    """By us, although backend and client went on."""
    refusal: Refusal | None = None
    """What we answer in the backend's place."""
    recording: Recording | None = None
    _head_sent = False
    _chunked = False

    def __init__(self, plane: DataPlane, client: ClientConnection, admission: Admission) -> None:
        super().__init__(plane, admission)
        self._client = client
        if admission.subject is not None:
            self.recording = Recording(
                admission.subject,
                plane.budget,
                request_size=len(admission.inbound.body),
                limit=plane.config.mirroring.max_body,
            )

    @property
    def head(self) -> AnswerHead | None:
        """The head of the answer, once the client has it."""
        return self._reader.head if self._head_sent and self._reader is not None else None

    def begin(self) -> None:
        self._plane.relays.add(self)
        crowd = self._plane.crowd
        if crowd is None or crowd.enter(self):
            self._attempt(fresh=not self.admission.is_replayable)

    def turn_away(self, refusal: Refusal, crowd: Crowd) -> None:
        """It gets no turn, or not another one."""
        if self.attempts:
            self._refuse(refusal, Ending.UNREACHABLE)
            return
        self.refusal = refusal
        crowd.unserved(self)
        self._client.refuse(refusal, self.inbound, request_id=self.request_id)

    def _none_free(self, now: float) -> Pick | None:
        """Every backend is down, or every one is full; then it waits, unless limits are not about it."""
        plane, ladder = self._plane, self.admission.ladder
        if plane.crowd is not None and plane.servers.is_crowded(
            ladder, self.wanted, now=now, without=self.failed
        ):
            if not is_bounded(self):
                return plane.servers.pick(ladder, self.wanted, now=now, without=self.failed, overfill=True)
            plane.crowd.wait(self)
        elif self.failed:
            message = "No backend of the model could be reached."
            self._refuse(unavailable("backend_unreachable", message), Ending.UNREACHABLE)
        else:
            self.cause = plane.servers.why_down(ladder, self.wanted)
            message = f"No backend of {ladder.model} is up."
            self._refuse(unavailable("no_backend", message), Ending.UNREACHABLE)
        return None

    # -- from the backend --------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        reader = self._reader
        assert reader is not None
        now = self._since = time.monotonic()
        if self.first_byte is None:
            self.first_byte = now
        trouble: AnswerUnreadable | None = None
        try:
            reader.feed(data)
        except AnswerUnreadable as error:
            trouble = error
        out = b""
        if not self._head_sent:
            if reader.interims:
                self._send_interims(reader)
            if trouble is not None:
                self._failed(UNREADABLE, str(trouble))
                self._drop_connection()
                refusal = bad_gateway("bad_answer", f"The backend's answer is unreadable: {trouble}.")
                self._refuse(refusal, Ending.CUT_OFF)
                return
            if reader.head is None:
                return
            out = self._open_answer(reader, reader.head)
        if reader.parts:
            body = reader.take()
            self.body_bytes += len(body)
            if self.recording is not None:
                self.recording.add(body)
            if self._chunked:
                body = b"%x\r\n%b\r\n" % (len(body), body)
            out = out + body if out else body
        if reader.complete:
            self._client.send(out + reader.last_chunk() if self._chunked else out)
            if self.relay_seconds is None:
                self.relay_seconds = time.monotonic() - now
            self._let_go_of_connection(reader, now)
            self._over(Ending.COMPLETE, now)
            self._client.relay_over(keep_alive=self._keep_alive, now=now)
            return
        if out:
            self._client.send(out)
            if self.relay_seconds is None:
                self.relay_seconds = time.monotonic() - now
        if trouble is not None:
            self._drop_connection()
            self._break_off(Ending.CUT_OFF)

    def backend_lost(self, *, cleanly: bool) -> None:
        """The connection is gone; `cleanly` when the backend ended it, not a reset."""
        reader = self._reader
        assert self._connection is not None
        assert reader is not None
        was_reused = self._connection.is_reused
        self._connection = None
        self.server.end(self)
        if self._head_sent:
            if not (cleanly and reader.end_of_file()):
                self._break_off(Ending.CUT_OFF)
                return
            if self._chunked:
                self._client.send(reader.last_chunk())
            now = time.monotonic()
            self._over(Ending.COMPLETE, now)
            self._client.relay_over(keep_alive=self._keep_alive, now=now)
            return
        may_retry = self.first_byte is None and not self._retried and self.admission.is_replayable
        if may_retry and was_reused:
            # The backend closed an idle connection just as we wrote on it. That says nothing about it.
            self._ask_again("idle_closed")
            return
        ended = "closed" if cleanly else "reset"
        self._failed(f"{ended} the connection without an answer")
        self.failed |= {self.server}
        if may_retry and self._plane.can_pick(self.admission, self.wanted, self.failed):
            self._ask_again("backend_closed")
        else:
            refusal = bad_gateway("backend_closed", "The backend closed the connection without an answer.")
            self._refuse(refusal, Ending.CUT_OFF)

    def _send_interims(self, reader: AnswerReader) -> None:
        interims = b"".join(reader.interims)
        reader.interims.clear()
        if not self.inbound.head.http10:
            self._client.send(interims)

    def _open_answer(self, reader: AnswerReader, head: AnswerHead) -> bytes:
        """The head for the client."""
        plane, inbound, server = self._plane, self.inbound, self.server
        http10 = inbound.head.http10
        server.known_answer = reader.known
        if server.failures:
            plane.server_answered(server)
        self._head_sent = True
        self.phase = Phase.BODY
        if inbound.held:
            self._let_go_of_body()
        self._keep_alive = (
            inbound.keep_alive and not plane.is_draining and not head.ends_with_connection(http10=http10)
        )
        if self.tier.name != self.wanted.name:
            labels = (
                ("model", self.admission.ladder.model),
                ("from", self.wanted.name),
                ("to", self.tier.name),
            )
            plane.meters.count("overflows" if self.is_overflow else "fallbacks", *labels)
        out, self._chunked = head.for_client(
            http10=http10,
            keep_alive=self._keep_alive,
            marks=_marks(self.tier.name, self.wanted.name),
            length=reader.length,
            request_id=self.request_id,
        )
        return out

    # -- from the client and the clock -------------------------------------------------------------

    def client_gone(self) -> None:
        """Nobody waits any more: the backend must not go on generating."""
        if self.phase is Phase.QUEUE and not self.attempts:
            assert self._plane.crowd is not None
            self.ending = Ending.CENSORED
            self._plane.crowd.unserved(self)
            return
        self._drop_connection()
        self._over(Ending.CENSORED, time.monotonic())

    def pause(self) -> None:
        """The client reads more slowly than the backend writes."""
        self._paused = True
        if self._connection is not None:
            self._connection.transport.pause_reading()

    def resume(self) -> None:
        self._paused = False
        self._since = time.monotonic()
        if self._connection is not None:
            self._connection.transport.resume_reading()

    def expire(self, now: float) -> None:
        """End it when a limit has passed; how long it may wait for its turn is the crowd's to say."""
        if self.phase is Phase.QUEUE:
            return
        late = overdue(
            self.phase,
            self._plane.config.timeouts,
            waited=now - self._since,
            in_all=now - self.inbound.started,
            paused=self._paused,
        )
        if late is None:
            return
        why = f"{late.code.replace('_', ' ')} of {late.limit:g} s"
        if self.phase is Phase.CONNECTION:
            self.cause = why
        else:
            self._failed(why, spoke=False)
        self._drop_connection()
        if self._head_sent:
            self._break_off(Ending.TIMEOUT)
        else:
            message = f"The backend did not answer within {late.limit:g} s."
            self._refuse(gateway_timeout(late.code, message), Ending.TIMEOUT)

    # -- ends --------------------------------------------------------------------------------------

    def _let_go_of_body(self) -> None:
        """It will not be sent again, and may be as large as many answers."""
        self._client.let_go(self.inbound)
        if self.recording is None or not self.recording.is_whole:
            self.admission.plain = None
            self.inbound.forget()

    def _refuse(self, refusal: Refusal, ending: Ending) -> None:
        self.refusal = refusal
        self._over(ending, time.monotonic())
        self._client.refuse(refusal, self.inbound, request_id=self.request_id)

    def _break_off(self, ending: Ending) -> None:
        """The client must see that its answer is not whole."""
        head = self.head
        assert head is not None
        self._over(ending, time.monotonic())
        self._client.break_off(only_by_reset=head.ends_with_connection(http10=self.inbound.head.http10))

    def _over(self, ending: Ending, now: float) -> None:
        self.phase = Phase.OVER
        self.ending = ending
        self._plane.relay_over(self, now)
        if self._reader is not None:
            self._reader.close()


@lru_cache(1024)
def _marks(tier: str, wanted: str) -> bytes:
    """Our header lines in an answer: who gave it, and instead of whom."""
    fallback = b"" if tier == wanted else b"x-tiergate-fallback-from: %b\r\n" % wanted.encode()
    return b"x-tiergate-tier: %b\r\n%b" % (tier.encode(), fallback)
