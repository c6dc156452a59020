"""The queue over a real API: who may see texts, what blind means, labels, and what becomes of the verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from evaluators.rubrics import RUBRICS
from service.approval.config import Adjudicating
from service.store.labels.access_log import LOOK, note
from service.store.labels.labelling import Given, Said, record_labels
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.adjudicating import BASELINE, CANDIDATE, KEYRING, Queueing
from tests.approval.live import MODEL, LiveApi, live_api

URL = "/api/v1/adjudication"
ADJUDICATING = Adjudicating(keyring=KEYRING, rubrics=RUBRICS, queued=("refusal",))
AT = 1_700_000_000.0


def queueing_of(api: LiveApi, tier: str = "w8a8", **changes: object) -> Queueing:
    given = {"model": MODEL, "tier": tier, "epoch": f"epoch-{tier}", "at": AT, **changes}
    return Queueing(db=api.db, **given)  # type: ignore[arg-type]


@pytest.fixture
def asked(database: Database, captures: Captures) -> Iterator[LiveApi]:
    """An API that opens texts, over SQLite and over PostgreSQL."""
    with live_api(database, captures, adjudication=ADJUDICATING) as running:
        yield running


@pytest.fixture
def local(sqlite_database: Database, captures: Captures) -> Iterator[LiveApi]:
    with live_api(sqlite_database, captures, adjudication=ADJUDICATING) as running:
        yield running


@pytest.mark.parametrize("path", ["/items?after=%00", "/items?evaluator=%00", "/next?evaluator=%00"])
def test_what_no_database_holds_is_found_nowhere(asked: LiveApi, path: str) -> None:
    assert asked.client("label").get(f"{URL}{path}").status_code == 200
    assert asked.client("approve").get(f"{URL}/access?item=%00").json()["entries"] == []


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def say(client: httpx.Client, *labels: dict[str, str], **more: object) -> httpx.Response:
    return client.post(f"{URL}/labels", json={"labels": list(labels), **more})


def test_a_pair_is_read_and_labelled_and_never_tells_its_tier(asked: LiveApi) -> None:
    (item,) = queueing_of(asked).add("pf")
    client = asked.client("label")
    answer = client.get(f"{URL}/next")
    told = answer.json()["item"]
    assert told["item"] == item
    assert {told["a"]["text"], told["b"]["text"]} == {BASELINE, CANDIDATE}
    assert told["request"] == [{"role": "user", "text": "the secret question"}]
    assert told["rubric"]["question"] == "Does this answer go along with its request?"
    assert (told["model"], told["evaluator"]) == (MODEL, "refusal")
    for word in ("w8a8", "w4a16", "bf16", "tier", "harm", "passed", "comply"):
        assert word not in json.dumps({**told, "rubric": ""})
    assert say(client, {"item": item, "label": "both"}).json() == {
        "recorded": 1,
        "replaced": 0,
        "unchanged": 0,
        "conflicts": [],
        "unknown": [],
        "seen_openly": [],
    }
    left = client.get(f"{URL}/next").json()
    assert left["item"] is None
    assert "nothing is left for this labeller" in left["why"]


def test_texts_need_scope_label_even_on_this_machine(local: LiveApi) -> None:
    (item,) = queueing_of(local).add("pf")
    for path in ("/next", "/items"):
        for nobody in (local.client(), local.client("read")):
            refused = nobody.get(URL + path)
            assert code(refused) == (403, "insufficient_scope")
            assert "secret" not in refused.text
        for scope in ("label", "approve", "admin"):
            assert local.client(scope).get(URL + path).status_code == 200
    assert say(local.client(), {"item": item, "label": "a"}).status_code == 401
    assert code(say(local.client("read"), {"item": item, "label": "a"})) == (403, "insufficient_scope")
    assert local.client().get(URL).status_code == 200
    assert code(local.client("label").get(f"{URL}/access")) == (403, "insufficient_scope")


def test_who_may_label_may_change_nothing_else(local: LiveApi) -> None:
    client = local.client("label")
    tier = f"/api/v1/models/{MODEL}/tiers/w8a8"
    for method, path in (
        ("PUT", f"{tier}/approval"),
        ("DELETE", f"{tier}/approval"),
        ("POST", f"/api/v1/models/{MODEL}/rollback"),
        ("POST", f"{tier}/skip"),
        ("POST", f"{tier}/restore-alpha"),
        ("POST", "/api/v1/adjudicationx"),
        ("POST", "/api/v1/adjudication"),
    ):
        answer = client.request(method, path, json={} if method != "DELETE" else None)
        assert code(answer) == (403, "insufficient_scope"), path


def test_a_page_elsewhere_may_not_label(local: LiveApi) -> None:
    (item,) = queueing_of(local).add("pf")
    client = local.client("label", Origin="https://evil.example")
    assert code(say(client, {"item": item, "label": "a"})) == (403, "origin_not_allowed")


def test_saying_otherwise_is_a_conflict_that_is_named(asked: LiveApi) -> None:
    (item,) = queueing_of(asked).add("pf")
    client = asked.client("label")
    assert say(client, {"item": item, "label": "a"}).json()["recorded"] == 1
    told = say(client, {"item": item, "label": "b"}, {"item": "0" * 32, "label": "b"}).json()
    assert told["conflicts"] == [{"item": item, "labeller": "test-label", "had": "a", "given": "b"}]
    assert told["unknown"] == ["0" * 32]
    assert say(client, {"item": item, "label": "b"}, replace=True).json()["replaced"] == 1


def test_when_may_be_told_and_the_labeller_is_the_token(asked: LiveApi) -> None:
    (item,) = queueing_of(asked).add("pf")
    client = asked.client("label")
    asked.clock.at = AT + 500
    said = {"item": item, "label": "neither", "labeller": "test-label", "at": "2023-11-14T22:15:00Z"}
    assert say(client, said).status_code == 200
    entries = asked.client("approve").get(f"{URL}/access").json()["entries"]
    assert [(each["actor"], each["action"], each["detail"], each["at"]) for each in entries] == [
        ("test-label", "label", "test-label: neither", "2023-11-14T22:15:00Z")
    ]


def test_one_token_is_one_person_whatever_it_calls_itself(asked: LiveApi) -> None:
    (item,) = queueing_of(asked).add("pp", by_two=True)
    client = asked.client("label")
    mine = {"item": item, "label": "both"}
    for other in ("ben", "test-approve", "Test-label"):
        refused = say(client, mine, {**mine, "labeller": other})
        assert code(refused) == (422, "foreign_labeller")
        assert "tiergate token new" in refused.json()["hint"]
    (queue,) = client.get(URL).json()["queues"]
    assert (queue["labelled"], queue["labellers"]) == (0, [])
    assert say(client, mine).json()["recorded"] == 1
    assert client.get(f"{URL}/next").json()["item"] is None
    second = asked.client("approve")
    assert second.get(f"{URL}/next").json()["item"]["item"] == item
    assert say(second, mine).json()["recorded"] == 1
    (queue,) = client.get(URL).json()["queues"]
    assert [(each["first"], each["second"]) for each in queue["agreement"]] == [
        ("test-approve", "test-label")
    ]


NO_LABELS: tuple[dict[str, str], ...] = (
    {"label": "c"},
    {"item": "x"},
    {"at": "yesterday"},
    {"at": "2023-11-14T22:15:00"},
    {"at": "2999-01-01T00:00:00Z"},
    {"labeller": "judge:me"},
    {"labeller": "ben"},
    {"labeller": "a\nb"},
    {"labeller": " "},
    {"tier": "w8a8"},
)


def test_what_a_token_was_shown_with_its_sides_it_is_not_given_and_says_nothing_of(asked: LiveApi) -> None:
    (item,) = queueing_of(asked).add("pf")
    with asked.db.write() as connection:
        note(connection, [item], actor="test-label", action=LOOK, at=AT)
    client = asked.client("label")
    assert client.get(f"{URL}/next").json()["item"] is None
    assert client.get(f"{URL}/items").json()["items"] == []
    told = say(client, {"item": item, "label": "a"}).json()
    assert (told["recorded"], told["seen_openly"]) == (0, [item])
    assert asked.client("approve").get(f"{URL}/next").json()["item"]["item"] == item


def test_what_is_no_label_is_refused(local: LiveApi) -> None:
    (item,) = queueing_of(local).add("pf")
    client = local.client("label")
    for change in NO_LABELS:
        answer = say(client, {"item": item, "label": "a", **change})
        assert answer.status_code == 422, (change, answer.text)
    assert client.get(URL).json()["queues"][0]["labelled"] == 0


def test_a_request_has_at_least_one_label_and_at_most_so_many(local: LiveApi) -> None:
    client = local.client("label")
    assert say(client).status_code == 422
    assert say(client, *[{"item": f"{n:032x}", "label": "a"} for n in range(201)]).status_code == 422
    assert say(client, *[{"item": f"{n:032x}", "label": "neither"} for n in range(200)]).status_code == 200


def test_items_come_in_pages_and_every_one_is_written_down(asked: LiveApi) -> None:
    ids = sorted(queueing_of(asked).add("pp", 5))
    client, seen, after = asked.client("label"), [], ""
    while True:
        page = client.get(f"{URL}/items", params={"after": after, "limit": "2"}).json()
        seen += [each["item"] for each in page["items"]]
        if page["next_after"] is None:
            break
        after = page["next_after"]
    assert seen == ids
    log = asked.client("approve").get(f"{URL}/access", params={"limit": "3"}).json()
    assert [each["item"] for each in log["entries"]] == ids[:3]
    rest = asked.client("approve").get(f"{URL}/access", params={"after": str(log["next_after"])}).json()
    assert [each["item"] for each in rest["entries"]] == ids[3:]
    say(client, {"item": ids[0], "label": "both"})
    todo = client.get(f"{URL}/items", params={"todo": "true"}).json()["items"]
    assert [each["item"] for each in todo] == ids[1:]


def test_unknown_models_and_empty_queues_say_what_to_do(local: LiveApi) -> None:
    client = local.client("label")
    assert code(client.get(f"{URL}/next", params={"model": "org/modle"})) == (404, "unknown_model")
    assert code(client.get(URL, params={"model": "no"})) == (404, "unknown_model")
    assert client.get(URL).json() == {"evaluators": ["refusal"], "queues": []}
    assert client.get(f"{URL}/next", params={"evaluator": "tool_use"}).json()["item"] is None


def test_an_api_without_keys_says_so_and_one_with_other_keys_too(
    sqlite_database: Database, captures: Captures
) -> None:
    with live_api(sqlite_database, captures) as without:
        queueing_of(without).add("pf")
        assert code(without.client("label").get(f"{URL}/next")) == (409, "no_adjudication")
        assert without.client().get(URL).json()["evaluators"] == []


def test_the_status_tells_agreement_errors_and_what_labels_correct(asked: LiveApi) -> None:
    queueing = queueing_of(asked)
    harms = queueing.add("pf", 4, by_two=True)
    clean = queueing.add("pp", 120)
    sides = {}
    client, after = asked.client("label"), ""
    while True:
        page = client.get(f"{URL}/items", params={"after": after}).json()
        sides |= {each["item"]: "a" if each["a"]["text"] == BASELINE else "b" for each in page["items"]}
        after = page["next_after"]
        if after is None:
            break
    other = {"a": "b", "b": "a"}
    for who, wrong in (("admin", None), ("label", 3)):
        say(
            asked.client(who),
            *[
                {
                    "item": each,
                    "label": "both" if place < 2 else other[sides[each]] if place == wrong else sides[each],
                }
                for place, each in enumerate(harms)
            ],
        )
    say(asked.client("admin"), *[{"item": each, "label": "both"} for each in clean])
    given = [Given(item_id=each, labeller="judge:j", said=Said.BOTH, at=AT) for each in (*harms, *clean[:60])]
    record_labels(asked.db, given, token="judge:j", judge=True)
    (queue,) = client.get(URL, params={"model": MODEL}).json()["queues"]
    assert (queue["tier"], queue["evaluator"]) == ("w8a8", "refusal")
    assert (queue["queued"], queue["kept"], queue["discordant"]) == (124, 124, 4)
    assert (queue["labelled"], queue["open"], queue["disputed"]) == (123, 1, [harms[3]])
    assert queue["labellers"] == [
        {"labeller": "test-admin", "labelled": 124, "skipped": 0},
        {"labeller": "test-label", "labelled": 4, "skipped": 0},
    ]
    (both,) = queue["agreement"]
    assert (both["first"], both["second"], both["items"], both["agreed"]) == (
        "test-admin",
        "test-label",
        4,
        3,
    )
    # By hand: p_e = (2*2 + 2*1)/16, as the second gave three answers: both, both, the same, another.
    assert both["kappa"] == pytest.approx((3 / 4 - 6 / 16) / (1 - 6 / 16))
    assert queue["evaluator_errors"]["pairs"] == 123
    assert queue["evaluator_errors"]["candidate_sensitivity"] == 1.0
    assert queue["evaluator_errors"]["candidate_specificity"] < 1.0
    assert queue["correction"]["labels"] == 123
    assert queue["judge"]["labelled"] == 64
    assert queue["judge"]["agreement"]["second"] == "people"
    assert queue["judge"]["errors"]["candidate_sensitivity"] == 0.0


def test_a_verdict_says_what_labels_corrected_and_every_reading_agrees(local: LiveApi) -> None:
    ids = queueing_of(local).add("pp", 110)
    local.record("w8a8", clean=40)
    before = local.client().get(f"/api/v1/models/{MODEL}/tiers/w8a8/verdict").json()
    assert before["decision"] == "accept"
    client = local.client("label")
    say(client, *[{"item": each, "label": "both"} for each in ids])
    after = local.client().get(f"/api/v1/models/{MODEL}/tiers/w8a8/verdict").json()
    found = {each["criterion"]: each for each in after["findings"]}["refusal"]
    assert after["decision"] == "accept"
    assert found["correction"]["suffices"] is True
    assert found["interval"] == found["correction"]["interval"]
    assert "corrected by 110 labels: raw +0.0 pp, corrected +0.0 pp [" in found["reason"]
    assert any("corrected by 110 labels" in reason for reason in after["reasons"])
    why = local.client().get(f"/api/v1/models/{MODEL}/tiers/w8a8/verdict/why").json()
    (step,) = [each for each in why["steps"] if each["title"] == "refusal: labels"]
    assert step["numbers"]["labels"] == 110
    assert "may withhold acceptance and never brings it about" in step["sentence"]
    assert [each["correction"] for each in after["findings"] if each["criterion"] == "structured_output"] == [
        None
    ]


def test_hostile_text_is_json_and_nothing_else(local: LiveApi) -> None:
    hostile = '\x1b[2J\u202e</script><img src=x onerror=alert(1)> {"label":"a"} \0'
    queueing_of(local).add("pf", candidate=hostile)
    answer = local.client("label").get(f"{URL}/next")
    assert answer.headers["content-type"] == "application/json"
    assert hostile in {answer.json()["item"][side]["text"] for side in "ab"}


def test_an_approval_keeps_the_verdict_with_what_labels_corrected(local: LiveApi) -> None:
    ids = queueing_of(local).add("pp", 110)
    local.record("w8a8", clean=40)
    say(local.client("label"), *[{"item": each, "label": "both"} for each in ids])
    approved = local.client("approve").put(f"/api/v1/models/{MODEL}/tiers/w8a8/approval", json={})
    assert approved.status_code == 200, approved.text
    assert local.client().get(f"/api/v1/models/{MODEL}/decisions").json()["chain"] == "intact"


def test_labels_that_speak_against_a_tier_stand_in_the_way_of_its_approval(local: LiveApi) -> None:
    queueing = queueing_of(local)
    ids = queueing.add("pp", 110)
    local.record("w8a8", clean=40)
    url = f"/api/v1/models/{MODEL}/tiers/w8a8"
    assert local.client().get(f"{url}/verdict").json()["decision"] == "accept"
    client, sides, after = local.client("label"), {}, ""
    while after is not None:
        page = client.get(f"{URL}/items", params={"after": after}).json()
        sides |= {each["item"]: "a" if each["a"]["text"] == BASELINE else "b" for each in page["items"]}
        after = page["next_after"]
    # In three of ten pairs that the evaluator takes for equal, people let only the baseline pass.
    labels = [
        {"item": each, "label": sides[each] if number % 10 < 3 else "both"} for number, each in enumerate(ids)
    ]
    say(client, *labels)
    told = local.client().get(f"{url}/verdict").json()
    assert told["decision"] == "undecided"
    assert any("withheld: within the margin of 0.2 by the evaluator" in each for each in told["reasons"])
    refused = local.client("approve").put(f"{url}/approval", json={})
    assert code(refused) == (409, "verdict_not_accept")
    assert any("corrected by 110 labels: raw +0.0 pp" in each for each in refused.json()["reasons"])
