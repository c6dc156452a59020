"""One request of a load run: when what happened, in seconds from the start of its block by a monotonic clock.

    TTFT = first token - scheduled
    TPOT = (last token - first token) / (n - 1)        n output tokens; none where n < 2
    E2E  = last token - scheduled = TTFT + TPOT x (n - 1), by these definitions

A token is the first byte of content, reasoning, tool arguments or refusal to arrive, not a role or a comment.
All begin when the request was due, not when it was sent: a generator that falls behind makes the figures
worse, never better (design section 11).
"""

from __future__ import annotations

from dataclasses import dataclass

from service.fleet import Slo

NO_OUTPUT = "no_output"
"""Fault of an answer that is complete and carries nothing: its first token never came."""
GIVEN_UP = "given_up"
"""Fault of a request that was silent when the load was over, its SLO missed: nobody waited for it."""
OUT_OF_FILES = "out_of_files"
"""Fault of the generator: no descriptor was left for a connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What became of one request; times are None when it never came so far."""

    ordinal: int
    """Its place in the block's order of sending, warm-up included."""
    request: int
    """Which of the requests given to the block it was."""
    scheduled: float
    begun: float
    """When the generator took it up; later than scheduled by the generator's own fault alone."""
    sent: float | None = None
    """When its bytes were handed to a connection; None when none could be had."""
    first_byte: float | None = None
    """Of the answer, head included."""
    first_token: float | None = None
    last_token: float | None = None
    ended: float | None = None
    """When the answer was complete, or given up."""
    tokens: int | None = None
    """Of output, as the server's usage tells."""
    counted: int = 0
    """Events that carried output."""
    written: int = 0
    """Bytes of that output, in UTF-8."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    """Of the prompt, found in the prefix cache, as the server's usage tells."""
    status: int | None = None
    """Of HTTP; None without an answer."""
    fault: str = ""
    """Why it failed, a word of `FaultKind` or of ours; empty when its answer is complete."""

    @property
    def output_tokens(self) -> int:
        """By usage, or else by events."""
        return self.counted if self.tokens is None else self.tokens

    @property
    def lag(self) -> float:
        """By how much the generator took it up too late."""
        return self.begun - self.scheduled

    @property
    def ttft(self) -> float | None:
        """Time to the first token; None when none came."""
        return None if self.first_token is None else self.first_token - self.scheduled

    @property
    def tpot(self) -> float | None:
        """Time per output token after the first; None with fewer than two tokens and for a failure."""
        if self.fault or self.first_token is None or self.last_token is None or self.output_tokens < 2:
            return None
        return (self.last_token - self.first_token) / (self.output_tokens - 1)

    @property
    def e2e(self) -> float | None:
        """From when it was due to its last token; None for a failure."""
        return None if self.fault or self.last_token is None else self.last_token - self.scheduled

    def meets(self, slo: Slo) -> bool:
        """Whether its tokens count: complete, first token in time, and the others too where there are any."""
        if self.fault or self.ttft is None or self.ttft > slo.ttft_seconds:
            return False
        return self.tpot is None or self.tpot <= slo.tpot_seconds
