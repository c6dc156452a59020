"""Files of requests on their way into the corpus, and out of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

from evaluators.exchange import Endpoint, Json, Request
from service.proxy.entry.admission import stratum_of
from service.proxy.entry.surface import Surface
from service.redaction import Mask, redacted, unmasked
from service.store.kept.corpus import Drawn, Place, rank_of, seal_request
from service.store.kept.corpus_members import Member
from service.store.redis.capture import Keyring
from service.strata import language_of
from service.traces import BadLine, NotATrace, Trace, Traced, body_of, looks_like_trace, read_trace
from service.wire import BatchLine, read_batch, read_body, replay_body, write_batch_line, write_body
from service.wire.replay import without_traces

EVERY = 500
"""Requests between two reports of how far it is."""


class FileUnreadable(Exception):
    """The file as a whole cannot be read, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What a file holds."""

    drawn: tuple[Drawn, ...]
    bad: tuple[BadLine, ...]
    kind: str
    """`batch` or `trace`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Importing:
    """Where requests go, and how they are kept there."""

    model: str
    name: str
    mask: Mask
    salt: bytes
    keyring: Keyring
    at: float
    """Unix seconds."""
    told: Callable[[int], None] = lambda done: None
    """Hears how many requests are read."""

    def keep(
        self, request: Request, *, label: str, arrived: float | None = None, made_up: bool = False
    ) -> Drawn:
        """One request, masked and sealed; what is made up is nobody's, and its words are English."""
        mask = unmasked if made_up else self.mask
        asked: dict[str, Json] = {**without_traces(request), "model": self.model}
        body = write_body(redacted(asked, mask))
        original = sha256(replay_body(request, model=self.model)).hexdigest()
        digest = sha256(body).hexdigest()
        language = "en" if made_up else language_of(request.asked)
        stratum = f"{stratum_of(len(body), Surface(body))}/{language}"
        place = Place(model=self.model, name=self.name, stratum=stratum, tenant="")
        return Drawn(
            place=place,
            digest=digest,
            original=original,
            rank=rank_of(self.salt, original),
            label=mask(label),
            arrived_at=arrived,
            blob=seal_request(
                place,
                digest=digest,
                path=request.endpoint.value,
                body=body,
                conversation=None,
                at=self.at,
                keyring=self.keyring,
            ),
        )


def read_file(path: Path, importing: Importing, *, seed: str, exact: bool, limit: int | None) -> Imported:
    """The requests of a batch file or of a trace; raises `FileUnreadable`."""
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            first = next((line for line in file if line.strip()), "")
            file.seek(0)
            if not first:
                raise FileUnreadable(f"{path} is empty")
            if looks_like_trace(first):
                return _trace(read_trace(file), importing, seed=seed, exact=exact, limit=limit)
            if not first.lstrip().startswith("{"):
                raise FileUnreadable(
                    f"{path} is neither: expected OpenAI batch lines with custom_id, method, url and body, "
                    "or a trace with lengths (input_length and output_length, or a CSV header with "
                    "ContextTokens and GeneratedTokens)"
                )
            return _batch(read_batch(file), importing, limit=limit)
    except NotATrace as error:
        raise FileUnreadable(f"{path}: {error}") from None
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be read: {error.strerror}") from None


def _batch(lines: Iterator[BatchLine | BadLine], importing: Importing, *, limit: int | None) -> Imported:
    drawn: list[Drawn] = []
    bad: list[BadLine] = []
    for each in lines:
        if isinstance(each, BadLine):
            bad.append(each)
        elif limit is None or len(drawn) < limit:
            drawn.append(importing.keep(each.request, label=each.custom_id))
            if len(drawn) % EVERY == 0:
                importing.told(len(drawn))
    return Imported(drawn=tuple(drawn), bad=tuple(bad), kind="batch")


def _trace(trace: Trace, importing: Importing, *, seed: str, exact: bool, limit: int | None) -> Imported:
    return Imported(
        drawn=tuple(_synthetic(islice(trace.requests, limit), importing, seed=seed, exact=exact)),
        bad=trace.bad,
        kind="trace",
    )


def _synthetic(traced: Iterable[Traced], importing: Importing, *, seed: str, exact: bool) -> Iterator[Drawn]:
    for number, each in enumerate(traced, 1):
        body = body_of(each, model=importing.model, seed=seed, exact=exact)
        request = read_body(Endpoint.CHAT_COMPLETIONS, body)
        yield importing.keep(request, label=f"line-{each.line}", arrived=each.arrived, made_up=True)
        if number % EVERY == 0:
            importing.told(number)


def batch_lines(members: Iterable[Member]) -> Iterator[str]:
    """One line a request, each under a `custom_id` of its own."""
    taken: set[str] = set()
    for member in members:
        label = member.listed.label
        if not label or label in taken:
            label = member.listed.digest[:24]
        taken.add(label)
        yield write_batch_line(custom_id=label, url=member.path, body=_body(member))


def _body(member: Member) -> Mapping[str, Json]:
    return json.loads(member.body)  # type: ignore[no-any-return]
