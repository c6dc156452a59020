"""From socket to verdict, through every process, on a real Valkey and a real database."""

from __future__ import annotations

import base64
import concurrent.futures
import json
import os
import re
import signal
import threading
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.conftest import (
    MODEL,
    Start,
    System,
    descendants,
    dump,
    extraction,
    question,
    recall,
    until,
)
from tests.acceptance.tap import Tap
from tests.conftest import ValkeyServer
from tests.patience import PATIENCE

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(480)]
KINDS = (extraction, recall, question)


def send_all(system: System, count: int) -> None:
    """`count` requests of each kind, every second one streamed; no client may see an error."""
    bodies = [kind(number, stream=number % 2 == 0) for number in range(count) for kind in KINDS]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(system.chat, bodies))
    assert {answer.status_code for answer in answers} == {200}


def settled(system: System) -> dict[str, Any]:
    """The ledger, once every capture has been dealt with: what a killed broker forgot is swept in 150 s."""

    def quiet() -> dict[str, Any] | None:
        account = system.ledger()
        return (
            account
            if account["balanced"]
            and account["seen"] >= system.sent
            and account["waiting"] == account["in_flight"] == 0
            else None
        )

    try:
        return until("a settled ledger", quiet, 200)
    except BaseException:
        print(dump(system))
        raise


def findings(verdict: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["criterion"]: finding for finding in verdict["findings"]}


def test_a_damaged_tier_is_rejected_a_healthy_one_serves_and_every_part_tells_its_health(
    start: Start,
) -> None:
    system = start(("bf16", "w8a8", "w2"))
    system.backends["w2"].script(mode="broken")
    send_all(system, 30)
    account = settled(system)
    assert account["seen"] == account["sampled"] == account["shipped"] == account["processed"] == 90

    healthy, damaged = system.verdict("w8a8"), system.verdict("w2")
    assert healthy["decision"] == "accept", healthy["reasons"]
    assert damaged["decision"] == "reject"
    broken = findings(damaged)
    assert broken["structured_output"]["decision"] == "reject"
    assert broken["long_context_recall"]["decision"] == "reject"
    assert broken["refusal"]["decision"] != "reject"
    assert findings(healthy)["structured_output"]["n"] == 30
    shown = {"control": "passed", "attribution": "passed", "slo": "not_asked", "money": "not_asked"}
    assert healthy["gates"] | shown == healthy["gates"]

    refused = system.ask("PUT", f"/models/{MODEL}/tiers/w2/approval", json={})
    assert refused.status_code == 409
    assert "structured_output" in refused.text

    every_component_serves_its_health_and_metrics(system)
    approve_and_roll_back_under_load(system)
    assert system.stop() == 0


def every_component_serves_its_health_and_metrics(system: System) -> None:
    """All that `up` says it listens on."""
    pages = re.findall(r"http://\S+/metrics", system.log.read_text())
    assert len(pages) == 6, "proxy, API, worker, guard, beat and load worker"
    families = set()
    for page in pages:
        for path in ("healthz", "readyz"):
            assert httpx.get(page.replace("metrics", path)).status_code == 200
        answer = httpx.get(page, headers={"authorization": f"Bearer {system.token}"})
        assert answer.status_code == 200
        families |= {
            sample.name
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
            if sample.labels.get("model", MODEL) == MODEL
        }
    assert {
        "tiergate_proxy_requests_total",
        "tiergate_worker_pairs_total",
        "tiergate_verdict",
        "tiergate_ledger_requests",
    } <= families


def approve_and_roll_back_under_load(system: System) -> None:
    """Fifty concurrent streams while the route changes twice: none fails, and all of them follow."""
    for backend in system.backends.values():
        backend.script(pause=0.005)
    stop = threading.Event()
    tiers: list[str] = []
    failures: list[str] = []

    def stream_on(worker: int) -> None:
        number = 10_000 * (worker + 1)
        with httpx.Client(timeout=PATIENCE) as client:
            while not stop.is_set():
                number += 1
                body = question(number, stream=True) | {"model": MODEL}
                try:
                    answer = client.post(f"{system.proxy}/v1/chat/completions", json=body)
                except httpx.HTTPError as error:
                    failures.append(repr(error))
                    continue
                if answer.status_code != 200 or not answer.content.endswith(b"data: [DONE]\n\n"):
                    failures.append(f"{answer.status_code} {answer.content[-80:]!r}")
                tiers.append(answer.headers["x-tiergate-tier"])

    def switch(method: str, path: str, to: str) -> None:
        answer = system.ask(method, path, json={})
        assert answer.status_code in (200, 201), answer.text
        # Two of each stream at least.
        until(f"all requests go to {to}", lambda: set(tiers[-200:]) == {to})
        since = len(tiers)
        until("more of them", lambda: len(tiers) > since + 100)
        assert set(tiers[since:]) == {to}

    threads = [threading.Thread(target=stream_on, args=(worker,)) for worker in range(50)]
    for thread in threads:
        thread.start()
    try:
        until("streams under way", lambda: len(tiers) > 50)
        switch("PUT", f"/models/{MODEL}/tiers/w8a8/approval", "w8a8")
        switch("POST", f"/models/{MODEL}/rollback", "bf16")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    actions = [entry["action"] for entry in system.ask("GET", f"/models/{MODEL}/decisions").json()["entries"]]
    assert {"approve", "roll_back"} <= set(actions)


def test_clients_notice_nothing_while_everything_downstream_fails(start: Start) -> None:
    system = start(shadow={"on_serving": True, "timeout": "2s", "retries": 1})

    def clients_are_served(number: int) -> None:
        for stream in (False, True):
            system.serves_at_once([extraction(number + 3 * stream + i, stream=stream) for i in range(3)])

    clients_are_served(0)
    with system.frozen("valkey-server"):
        clients_are_served(100)
    system.backends["w8a8"].script(mode="hang")
    clients_are_served(200)
    system.backends["w8a8"].script(mode="error")
    clients_are_served(300)
    until("a replay is answered 500", lambda: system.backends["w8a8"].seen().get("error", 0) >= 2)
    system.backends["w8a8"].script(mode="ok")
    with system.frozen("celery", "replay"):
        clients_are_served(400)
    for pid in system.part("valkey-server"):
        os.kill(pid, signal.SIGKILL)
    clients_are_served(500)
    until("Valkey is back", lambda: system.part("valkey-server"))
    clients_are_served(600)

    account = settled(system)
    assert account["seen"] == system.sent
    assert account["sampled"] == account["shipped"] + sum(account["dropped"].values())
    verdict = system.verdict("w8a8")
    scored = findings(verdict)["structured_output"]
    assert scored["harm"] >= 1, "answering 500 is a failure of the tier"

    pid = system.process.pid
    children = descendants(pid)
    assert system.stop() == 0
    until("no orphans", lambda: not [child for child in children if _alive(child)])
    assert "did not stop by itself" not in system.log.read_text()
    stopped = system.account_on_disk()
    assert (stopped.balanced, stopped.problems) == (True, ())
    assert (stopped.seen, stopped.waiting, stopped.unaccounted) == (system.sent, 0, 0)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_crosses_the_wire_to_redis_says_nothing_of_prompts(
    start: Start, own_valkey: ValkeyServer
) -> None:
    with Tap(own_valkey.port) as tap:
        system = start(store={"redis": f"redis://127.0.0.1:{tap.port}/0"})
        send_all(system, 4)
        settled(system)
        assert system.stop() == 0
    heard = tap.heard()
    told = b"".join(heard)
    for words in (
        b"order number",
        b"access code",
        b"magic number",
        b"things to cook",
        "订单".encode(),
        b"you asked",
    ):
        assert words not in told
    messages = [
        json.loads(base64.b64decode(body))
        for body in re.findall(rb'"body": ?"([A-Za-z0-9+/=]+)", ?"content-encoding', told)
    ]
    replays = [args for args, _, _ in messages if args]
    assert replays, told[:2000]
    ids = {each for args in replays for each in args[0]}
    assert all(len(args) == 1 for args in replays)
    assert len(ids) == system.sent
    assert all(re.fullmatch(r"[0-9a-f]+-\d+-[0-9a-f]{8}", each) for each in ids), ids
