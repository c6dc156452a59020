"""The guard tells webhooks at least once, waits for none, tries again later, and gives up in the open."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from celery import signals

from service.approval.dialects.outgoing.receiver import Receiver
from service.settings import load
from service.store.decided.decisions import append
from service.store.outgoing.callbacks import TAKEN_SECONDS, CallbackState, due, take
from service.store.outgoing.webhook_terms import Form, WebhookTerms
from service.store.outgoing.webhooks import Event, messages, owe_log, retry, tool_of
from service.store.sql.database import Database
from service.store.verdicts.standing import Question
from tests.approval.dialects.outgoing.chat_servers import Inbox, Plain, receiving
from tests.approval.live import WIDE, add_pairs
from tests.conftest import ValkeyServer
from tests.patience import PATIENCE
from tests.workers.celery_parts import configuration, until
from tests.workers.walk import MODEL
from workers import tasks
from workers.app import GUARD_QUEUE, create_app
from workers.webhooks import ATTEMPTS, Postman, open_postman, send_webhooks

NOW = 1_700_000_000.0


@contextmanager
def postman_of(db: Database, **inboxes: Inbox) -> Iterator[Postman]:
    """A guard without models that has read the log to its end, and receivers by name."""
    with ExitStack() as stack:
        terms = []
        for name, inbox in inboxes.items():
            inbox.now = NOW
            url = stack.enter_context(receiving(inbox))
            terms.append(WebhookTerms(name=name, form=Form.PLAIN, url=f"{url}/hook", secrets=("s1",)))
        question = Question(policy=WIDE, epoch_of=lambda model, tier: "e1")
        postman = open_postman(db, {}, question, tuple(terms))
        try:
            send_webhooks(postman, now=NOW)
            yield postman
        finally:
            for inbox in inboxes.values():
                if inbox.hold is not None:
                    inbox.hold.set()
            postman.close()


def run(postman: Postman, at: float) -> None:
    """One run of the guard, and what it began until its end."""
    send_webhooks(postman, now=at)
    for each in postman.rounds.values():
        each.join()


def decided(db: Database, *actions: str) -> None:
    for number, action in enumerate(actions):
        append(db, at=NOW + number / 10, actor="ci", action=action, model="m", tier="w8a8")


def states(db: Database) -> list[CallbackState]:
    return [each.state for each in messages(db, state=None, limit=99)]


def test_what_is_decided_is_told_in_order(db: Database) -> None:
    inbox = Plain(secrets=("s1",))
    with postman_of(db, ops=inbox) as postman:
        decided(db, "approve", "promote", "roll_back")
        run(postman, NOW + 1)
        run(postman, NOW + 2)
    assert [each["action"] for each in inbox.taken] == ["approve", "promote", "roll_back"]
    assert states(db) == [CallbackState.ANSWERED] * 3


def test_a_receiver_that_hangs_holds_up_neither_the_guard_nor_others(db: Database) -> None:
    hangs, works = Plain(secrets=("s1",), hold=threading.Event()), Plain(secrets=("s1",))
    with postman_of(db, hangs=hangs, works=works) as postman:
        decided(db, "approve")
        send_webhooks(postman, now=NOW + 1)
        until(lambda: len(works.taken) == 1 and hangs.asked == 1)
        postman.rounds["works"].join()
        assert hangs.taken == []
        decided(db, "revoke")
        send_webhooks(postman, now=NOW + 6)
        until(lambda: len(works.taken) == 2)
        assert hangs.taken == []


class Held(Receiver):
    """It takes nothing before it is let go."""

    def __init__(self, terms: WebhookTerms) -> None:
        super().__init__(terms)
        self.let_go, self.in_vain = threading.Event(), False

    def deliver(self, event: Event, *, now: float) -> None:
        self.in_vain = not self.let_go.wait(PATIENCE)


def test_the_guard_goes_on_before_a_message_is_taken(db: Database) -> None:
    works = Plain(secrets=("s1",))
    held = Held(WebhookTerms(name="held", form=Form.SLACK, url="http://127.0.0.1:9/"))
    with postman_of(db, works=works) as postman:
        postman.receivers = {"held": held, **postman.receivers}
        decided(db, "approve")
        send_webhooks(postman, now=NOW + 1)
        until(lambda: len(works.taken) == 1)
        held.let_go.set()
        postman.rounds["held"].join()
    assert not held.in_vain
    assert states(db) == [CallbackState.ANSWERED] * 2


def test_what_is_not_taken_is_tried_again_with_the_same_id_and_given_up_in_the_open(db: Database) -> None:
    inbox = Plain(secrets=("s1",), script=[(503, "")] * ATTEMPTS.most)
    with postman_of(db, ops=inbox) as postman:
        decided(db, "approve")
        at, pauses = NOW + 1, []
        for _ in range(ATTEMPTS.most):
            run(postman, at)
            [message] = messages(db, state=None, limit=9)
            pauses.append(message.due_at - at)
            at = message.due_at
        assert pauses[:4] == [5.0, 10.0, 20.0, 40.0]
        assert max(pauses) == 3600.0
        assert states(db) == [CallbackState.GIVEN_UP]
        assert "answered 503" in message.problem
        run(postman, at + 99_999)
        assert (inbox.asked, len({*inbox.ids})) == (ATTEMPTS.most, 1)
        assert retry(db, receiver="ops", event_id=None, now=at) == 1
        inbox.now = at
        run(postman, at)
    assert states(db) == [CallbackState.ANSWERED]
    assert [each["id"] for each in inbox.taken] == inbox.ids[-1:]


def test_a_message_that_another_guard_has_taken_is_not_sent_twice(db: Database) -> None:
    inbox = Plain(secrets=("s1",))
    with postman_of(db, ops=inbox) as postman:
        decided(db, "approve")
        owe_log(db, postman.terms)
        [message] = due(db, NOW + 1, limit=9, tools=(tool_of("ops"),))
        assert take(db, message, now=NOW + 1)
        run(postman, NOW + 2)
        assert inbox.asked == 0
        inbox.now = NOW + 2 + TAKEN_SECONDS
        run(postman, NOW + 2 + TAKEN_SECONDS)
        assert inbox.asked == 1


def test_the_guard_of_a_configured_app_tells_them(
    valkey: ValkeyServer, db: Database, sqlite_url: str, tmp_path: Path
) -> None:
    (tmp_path / "hook").write_text("s1\n")
    inbox = Plain(secrets=("s1",), now=time.time())
    with receiving(inbox) as url:
        path = configuration(
            tmp_path,
            redis_url=valkey.url,
            database_url=sqlite_url,
            ladder=[
                {"tier": "bf16", "backends": ["http://127.0.0.1:9"]},
                {"tier": "w4a16", "backends": ["http://127.0.0.1:9"]},
            ],
            webhooks=[{"name": "ops", "url": f"{url}/hook", "secret_file": "hook"}],
        )
        settings = load(path, {})
        app = create_app(settings, {})
        try:
            assert app.conf.beat_schedule[tasks.WEBHOOKS]["options"]["queue"] == GUARD_QUEUE
            epoch = settings.epoch_of(MODEL, "w4a16")
            add_pairs(db, "w4a16", epoch=epoch, harm=400, model=MODEL, criteria=("structured_output",))
            app.tasks[tasks.WEBHOOKS]()
            append(db, at=time.time(), actor="ci", action="approve", model=MODEL, tier="w4a16")
            app.tasks[tasks.WEBHOOKS]()
            until(lambda: len(inbox.taken) >= 1)
        finally:
            signals.worker_process_shutdown.send(sender=None, pid=0, exitcode=0)
            app.close()
    assert "reject" in {each["action"] for each in inbox.taken}
