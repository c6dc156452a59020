"""Each form is taken by a receiver that verifies it as its tool does, and its refusals are understood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from service.approval.dialects.callbacks.sending import Unanswered
from service.approval.dialects.outgoing.bodies import dingtalk_signature, feishu_signature
from service.approval.dialects.outgoing.receiver import Receiver
from service.approval.dialects.outgoing.wording import ACTIONS, BY_A_PERSON, TITLES, lines_of
from service.store.outgoing.webhook_terms import Form, Told, WebhookTerms
from service.store.outgoing.webhooks import Event
from tests.approval.dialects.outgoing.chat_servers import Dingtalk, Feishu, Inbox, Plain, Slack, receiving

NOW = 1_700_000_000.5
EVENT = Event(
    event_id="log-41-9f86d081884c",
    kind=Told.HARM,
    action="roll_back",
    at=NOW - 3,
    model="qwen<3> & co",
    tier="w8a8",
    actor="guard",
    facts={"seq": 41, "digest": "9f86", "from": "w4a16"},
)
PATHS = {Form.SLACK: "/services/T0/B0/secret", Form.DINGTALK: "/robot/send?access_token=abc"}
INBOXES: dict[Form, Callable[..., Inbox]] = {
    Form.PLAIN: Plain,
    Form.SLACK: Slack,
    Form.FEISHU: Feishu,
    Form.DINGTALK: Dingtalk,
}


def deliver(inbox: Inbox, form: Form, *secrets: str, event: Event = EVENT, language: str = "en") -> None:
    inbox.now = NOW
    with receiving(inbox) as url:
        whole = f"{url}{PATHS.get(form, '/secret-path')}"
        terms = WebhookTerms(name="ops", form=form, url=whole, secrets=secrets, language=language)
        receiver = Receiver(terms)
        try:
            receiver.deliver(event, now=NOW)
        finally:
            receiver.close()


def text_of(document: Any) -> str:
    return str(document)


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_form_is_taken_and_tells_what_happened(form: Form, language: str) -> None:
    inbox = INBOXES[form](secrets=("s1",))
    deliver(inbox, form, *(() if form is Form.SLACK else ("s1",)), language=language)
    [document] = inbox.taken
    assert inbox.ids == [EVENT.event_id]
    for told in ("w8a8", "w4a16", ACTIONS[language]["roll_back"], TITLES[language][Told.HARM], "guard"):
        assert told in text_of(document)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_rejection_by_a_person_and_one_by_the_evidence_are_told_apart(language: str) -> None:
    by_evidence = replace(EVENT, kind=Told.DECISION, action="reject", actor="evidence", facts={"epoch": "e1"})
    by_person = replace(by_evidence, actor="alice", facts={"seq": 42, "epoch": "e1"})
    told = [lines_of(each, language)[0] for each in (by_evidence, by_person)]
    assert told[0] == f"qwen<3> & co w8a8: {ACTIONS[language]['reject']}"
    assert told[1] == f"qwen<3> & co w8a8: {ACTIONS[language][BY_A_PERSON]}"
    assert told[0] != told[1]


def test_a_plain_body_has_a_field_for_each_thing() -> None:
    inbox = Plain(secrets=("s1",))
    deliver(inbox, Form.PLAIN, "s1")
    [document] = inbox.taken
    text = document.pop("text")
    assert text.splitlines()[1:3] == [
        "qwen<3> & co w8a8: clients were rolled back to this tier",
        "from: w4a16",
    ]
    assert document == {
        "version": 1,
        "id": EVENT.event_id,
        "event": "harm",
        "action": "roll_back",
        "at": EVENT.at,
        "model": EVENT.model,
        "tier": "w8a8",
        "actor": "guard",
        "facts": {"seq": 41, "digest": "9f86", "from": "w4a16"},
    }


@pytest.mark.parametrize("form", [Form.PLAIN, Form.FEISHU, Form.DINGTALK])
@pytest.mark.parametrize("known", ["old", "new"])
def test_while_a_secret_is_rotated_who_knows_either_takes_it(form: Form, known: str) -> None:
    inbox = INBOXES[form](secrets=(known,))
    deliver(inbox, form, "new", "old")
    assert len(inbox.taken) == 1


@pytest.mark.parametrize("form", [Form.PLAIN, Form.FEISHU, Form.DINGTALK])
def test_another_secret_is_refused_and_told_without_the_url(form: Form) -> None:
    inbox = INBOXES[form](secrets=("s1",))
    with pytest.raises(Unanswered) as caught:
        deliver(inbox, form, "s2")
    assert inbox.taken == []
    assert "ops" in caught.value.problem
    assert caught.value.again is (form is not Form.PLAIN)
    for secret in ("s2", "access_token", "secret-path", "robot"):
        assert secret not in caught.value.problem


@pytest.mark.parametrize(
    ("form", "answer", "again", "pause"),
    [
        (Form.SLACK, (404, "no_service"), False, 0.0),
        (Form.SLACK, (500, "rollup_error"), True, 0.0),
        (Form.PLAIN, (503, ""), True, 0.0),
        (Form.PLAIN, (302, ""), False, 0.0),
        (Form.FEISHU, (200, '{"code": 11232, "msg": "frequency limited"}'), True, 60.0),
        (Form.DINGTALK, (200, '{"errcode": 130101, "errmsg": "send too fast"}'), True, 60.0),
        (Form.DINGTALK, (200, '{"errcode": true}'), True, 0.0),
        (Form.DINGTALK, (200, "<html>"), True, 0.0),
        (Form.FEISHU, (200, "[0]"), True, 0.0),
    ],
)
def test_a_refusal_says_whether_and_when_to_ask_again(
    form: Form, answer: tuple[int, str], again: bool, pause: float
) -> None:
    inbox = INBOXES[form](secrets=("s1",), script=[answer])
    with pytest.raises(Unanswered) as caught:
        deliver(inbox, form, *(() if form is Form.SLACK else ("s1",)))
    assert (caught.value.again, caught.value.pause) == (again, pause)


@pytest.mark.parametrize("form", Form)
def test_names_that_are_no_unicode_and_long_ones_are_told_all_the_same(form: Form) -> None:
    event = replace(EVENT, model="\ud800", actor="a" * 5000)
    inbox = INBOXES[form](secrets=("s1",))
    deliver(inbox, form, *(() if form is Form.SLACK else ("s1",)), event=event)
    assert len(inbox.taken) == 1


def test_signatures_are_those_of_the_chat_tools_sample_programs() -> None:
    assert dingtalk_signature("this is secret", "1700000000000") == (
        "sSFWELbV2YwjdDQhWZwTcWlX5BWUx5J6TPpsZmuPii0="
    )
    assert feishu_signature("demo", "1599360473") == "l1N0gAcBjdwBvGm1xMjOF0XSyaLRpR7tuO5dHfhAYc8="
