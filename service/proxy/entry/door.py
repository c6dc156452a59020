"""The door: which model a request is for, whether its exchange is kept, or why it goes no further."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from http import HTTPStatus
from urllib.parse import unquote

from evaluators.exchange import Endpoint, Request
from service.fleet import Ladder, Tier
from service.proxy.captures.recorder import Subject
from service.proxy.config import ProxyConfig
from service.proxy.entry import admission
from service.proxy.entry.guards import guards
from service.proxy.entry.packing import packed, unpacked
from service.proxy.entry.scan import ModelName, Trouble, form_model, renamed
from service.proxy.entry.surface import Surface
from service.proxy.gauges.meters import Ledger
from service.proxy.http.errors import Refusal
from service.proxy.http.heads import EXPECTED, ForwardPaths, Head
from service.proxy.http.requests import Inbound
from service.store.redis.capture import capture_id
from service.store.redis.counters import Skipped
from service.wire import (
    NotARequest,
    explicit_conversation,
    has_remote_media,
    is_stateful,
    read_body,
)


@dataclass(slots=True, kw_only=True)
class Admission:
    """A request that goes to a backend."""

    inbound: Inbound
    ladder: Ladder
    found: ModelName | None
    plain: bytes | None
    """The body without its content coding; None when it cannot be read."""
    sticky: bytes
    """What the choice of a tier sticks to."""
    is_replayable: bool
    subject: Subject | None
    """None when the exchange is not kept."""
    skipped: Skipped | None = None
    """Why it is not."""

    def body_for(self, tier: Tier) -> bytes:
        """The body as the tier's backends want it: at most with another model name in the client's place."""
        if self.found is None or self.plain is None or self.found.name == tier.model:
            return self.inbound.body
        body = renamed(self.plain, self.found, tier.model)
        return packed(body, self.inbound.head.content_encoding)


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """Answered from the configuration."""

    status: HTTPStatus
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a head alone decides; kept with the head, since a client's next request mostly has the same."""

    door: Door
    answer: OwnAnswer | Refusal | None
    """What no backend is asked for."""
    is_eligible: bool
    generates: bool
    """Also if it is not eligible by a whim of its spelling."""
    is_form: bool
    is_replayable: bool | None
    """None = it hangs on the body."""
    tenant: str
    path: str
    request_type: str
    request_encoding: str


class Door:
    """One per process: it numbers the captures."""

    def __init__(self, config: ProxyConfig, *, instance: str, ledger: Ledger) -> None:
        self._config = config
        self._ladders = config.ladders
        self._guards = guards(config.ladders)
        self._forwarded = ForwardPaths(config.forward_paths)
        self._instance = instance
        self._ledger = ledger
        self._sequence = 0
        only = next(iter(config.ladders)) if len(config.ladders) == 1 else None
        self._default = config.default_model or only

    def continue_from(self, before: Door) -> None:
        """Number on where the door before it stopped: an id is given once."""
        self._sequence = before._sequence

    def admit(self, inbound: Inbound, *, split: Callable[[str], bool]) -> Admission | OwnAnswer | Refusal:
        """What becomes of a request; `split` tells whether a model's traffic is divided between tiers."""
        head = inbound.head
        entry = head.entry
        if entry is None or entry.door is not self:
            entry = head.entry = self._entry(head)
        if entry.answer is not None:
            return self._stopped(Skipped.NOT_GENERATION, entry.answer)
        plain: bytes | None = inbound.body
        if head.content_encoding:
            plain = unpacked(inbound.body, head.content_encoding, most=self._config.max_request)
        surface: Surface | None = None
        found: ModelName | Trouble | None = None
        if plain:
            if entry.is_form:
                found = form_model(plain, head.content_type)
            else:
                surface = Surface(plain)
                found = surface.model
                if found is Trouble.NOT_UTF8 and not entry.is_eligible:
                    found = None  # it need not be JSON at all
        if isinstance(found, ModelName) and found.name in self._ladders:
            ladder = self._ladders[found.name]
        else:
            chosen = self._ladder(head, found, plain)
            if isinstance(chosen, Refusal):
                why = Skipped.TIER_UNKNOWN if entry.is_eligible else Skipped.NOT_GENERATION
                return self._stopped(why, chosen)
            ladder = chosen
        model = ladder.model
        if self._guards and (guard := self._guards.get(model)) is not None:
            refusal = guard.refuse(inbound.body, plain, surface, generates=entry.generates)
            if refusal is not None:
                return self._stopped(Skipped.REFUSED, replace(refusal, model=model), model)
        self._sequence = self._ledger.numbers.take()
        kept: Subject | Skipped = Skipped.NOT_GENERATION
        stratum = ""
        if entry.is_eligible:
            stratum = admission.stratum_of(len(inbound.body if plain is None else plain), surface)
            kept = self._keep(inbound, entry, plain, surface, model, stratum)
        self._ledger.arrived(model, stratum, kept if isinstance(kept, Skipped) else None)
        is_replayable = entry.is_replayable
        if is_replayable is None:
            is_replayable = surface is not None and not admission.leaves_traces(surface)
        return Admission(
            inbound=inbound,
            ladder=ladder,
            found=found if isinstance(found, ModelName) else None,
            plain=plain,
            sticky=self._sticky(head, plain) if split(model) else b"",
            is_replayable=is_replayable and plain is not None,
            subject=kept if isinstance(kept, Subject) else None,
            skipped=kept if isinstance(kept, Skipped) else None,
        )

    def _entry(self, head: Head) -> Entry:
        path = head.path
        answer: OwnAnswer | Refusal | None = None
        if path not in self._forwarded:
            answer = _not_found(path)
        elif path.startswith(b"/v1/models") and head.method != b"OPTIONS":
            answer = self._models(head)
        return Entry(
            door=self,
            answer=answer,
            is_eligible=admission.is_eligible(head.method, path),
            generates=admission.generates(head.method, path),
            is_form=head.content_type[:10].lower() == b"multipart/",
            is_replayable=admission.is_replayable(head.method, path),
            tenant=admission.tenant_of(self._config.mirroring.salt, head.credential),
            path=path.decode("latin-1"),
            request_type=head.content_type.decode("latin-1"),
            request_encoding=head.content_encoding.decode("latin-1"),
        )

    def _keep(
        self,
        inbound: Inbound,
        entry: Entry,
        plain: bytes | None,
        surface: Surface | None,
        model: str,
        stratum: str,
    ) -> Subject | Skipped:
        """The subject of a capture, or why there is none. Whatever needs reading comes last."""
        head, mirroring = inbound.head, self._config.mirroring
        if head.opted_out or head.replay:
            return Skipped.OPTED_OUT
        if mirroring.sample <= 0.0:
            return Skipped.NOT_SAMPLED
        identity = capture_id(self._instance, self._sequence, model)
        conversation = None if head.conversation is None else head.conversation.decode("utf-8", "replace")
        request: Request | None = None
        if (
            conversation is None
            and plain is not None
            and surface is not None
            and admission.names_conversation(surface)
        ):
            request = _read(head, plain)
            conversation = None if request is None else explicit_conversation(request)
        # By conversation where it is known, so that a conversation is kept whole or not at all.
        key = identity if conversation is None else f"{model}\0{conversation}"
        if not admission.is_sampled(mirroring.sample, mirroring.salt, key.encode("utf-8", "replace")):
            return Skipped.NOT_SAMPLED
        if len(inbound.body) > mirroring.max_body:
            return Skipped.TOO_LARGE
        if plain is None:
            return Skipped.STATEFUL  # nobody here can tell what it leans on
        if surface is not None and admission.is_suspicious(head.path, surface):
            request = request or _read(head, plain)
            if request is None or is_stateful(request):
                return Skipped.STATEFUL
            if has_remote_media(request):
                return Skipped.REMOTE_MEDIA
        return Subject(
            id=identity,
            model=model,
            path=entry.path,
            request_type=entry.request_type,
            request_encoding=entry.request_encoding,
            tenant=entry.tenant,
            conversation=conversation,
            expects=head.expects.decode() if head.expects in EXPECTED else "",
            stratum=stratum,
        )

    def _sticky(self, head: Head, plain: bytes | None) -> bytes:
        """What the tier sticks to: the conversation, explicit or by its beginning, within a tenant."""
        if head.conversation is not None:
            return head.credential + b"\0" + head.conversation
        anchor = None if plain is None else admission.anchor_of(plain)
        if anchor is None:
            return b"%b-%d" % (self._instance.encode(), self._sequence)
        return head.credential + b"\0" + anchor

    def _stopped(self, reason: Skipped, answer: OwnAnswer | Refusal, model: str = "") -> OwnAnswer | Refusal:
        """Requests that reach no model count under the empty name: clients must not make up counters."""
        self._ledger.numbers.take()
        self._ledger.arrived(model, "", reason)
        return answer

    def _ladder(self, head: Head, found: ModelName | Trouble | None, plain: bytes | None) -> Ladder | Refusal:
        if isinstance(found, Trouble):
            return _trouble(found)
        if found is not None:
            return _no_such_model(found.name, self._ladders)
        if self._default is not None:
            return self._ladders[self._default]
        if plain is None:
            return Refusal(
                status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                code="content_encoding",
                message="The body's Content-Encoding hides its `model`; send gzip, deflate, zstd or none.",
            )
        if head.method == b"POST":
            return Refusal(
                status=HTTPStatus.BAD_REQUEST,
                code="model_required",
                message=f"The request names no model. Served here: {', '.join(self._ladders)}.",
                param="model",
            )
        # A health check, a version: any backend's answer is as good as another's.
        return next(iter(self._ladders.values()))

    def _models(self, head: Head) -> OwnAnswer | Refusal | None:
        """The answer to /v1/models and below; None when the path only begins alike."""
        name = unquote(head.path.removeprefix(b"/v1/models").decode("latin-1"))
        if name and not name.startswith("/"):
            return None
        if head.method not in (b"GET", b"HEAD"):
            return Refusal(
                status=HTTPStatus.METHOD_NOT_ALLOWED,
                code="method_not_allowed",
                message="Models come from the configuration; they can be listed, not changed.",
            )
        if name in ("", "/"):
            listed = [_model_entry(model) for model in self._ladders]
            return OwnAnswer(HTTPStatus.OK, json.dumps({"object": "list", "data": listed}).encode())
        if name[1:] not in self._ladders:
            return _no_such_model(name[1:], self._ladders)
        return OwnAnswer(HTTPStatus.OK, json.dumps(_model_entry(name[1:])).encode())


def _read(head: Head, plain: bytes) -> Request | None:
    """The request as the evaluators see it; None when it is not one, which is for its backend to say."""
    body = admission.read_json(plain)
    if not isinstance(body, dict):
        return None
    try:
        return read_body(Endpoint(head.path.decode()), body)
    except NotARequest:
        return None


def _model_entry(model: str) -> dict[str, object]:
    return {"id": model, "object": "model", "created": 0, "owned_by": "tiergate"}


def _no_such_model(name: str, known: Iterable[str]) -> Refusal:
    return Refusal(
        status=HTTPStatus.NOT_FOUND,
        code="model_not_found",
        message=f"The model `{name[:200]}` does not exist. Served here: {', '.join(known)}.",
        param="model",
    )


def _not_found(path: bytes) -> Refusal:
    return Refusal(
        status=HTTPStatus.NOT_FOUND,
        code="path_not_forwarded",
        message=f"{path.decode('latin-1')[:200]} is not forwarded; `proxy.forward_paths` lists what is.",
    )


def _trouble(trouble: Trouble) -> Refusal:
    message = {
        Trouble.DUPLICATE: "The body names `model` more than once.",
        Trouble.NOT_UTF8: "The body is not in UTF-8, as JSON between systems must be (RFC 8259, 8.1).",
        Trouble.TOO_COMPLEX: "The body is too deep or has too many parts to find its `model`.",
    }[trouble]
    return Refusal(status=HTTPStatus.BAD_REQUEST, code=trouble.value, message=message, param="model")
