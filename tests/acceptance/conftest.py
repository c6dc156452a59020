"""Everything `tiergate up` starts, in front of scripted backends, as separate real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from service.store.sql.database import open_database
from service.store.traffic.account import LedgerAccount
from service.store.traffic.ledger import account
from tests.leash import Leashed
from tests.patience import PATIENCE
from tests.ports import free_port

BACKEND = Path(__file__).with_name("scripted_backend.py")
MODEL = "acme/small"
SHORTEST_PATIENCE = 1.0
"""Seconds: the proxy's with Redis, the shortest that anything downstream meets here."""


def until(what: str, true: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """The first true value of `true()`; fails with `what` when there is none in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if found := true():
                return found
        except (httpx.TransportError, ConnectionError):
            pass
        time.sleep(0.1)
    pytest.fail(f"not within {seconds:.0f} s: {what}")


def descendants(pid: int) -> dict[int, str]:
    """Command lines of all processes below `pid`, by pid."""
    found: dict[int, str] = {}
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            try:
                found[child] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                found |= descendants(child)
            except FileNotFoundError:
                continue
    return found


@dataclass
class Scripted:
    """One scripted backend process."""

    url: str
    process: subprocess.Popen[bytes]

    def script(self, **behaviour: Any) -> None:
        httpx.post(f"{self.url}/_script", json=behaviour).raise_for_status()

    def seen(self) -> dict[str, int]:
        return dict(httpx.get(f"{self.url}/_seen").json())


@dataclass
class System:
    """Tiergate on one machine, as a user starts it."""

    folder: Path
    config: dict[str, Any]
    backends: dict[str, Scripted]
    process: subprocess.Popen[str]
    proxy: str
    admin: str
    api: str
    log: Path
    token: str = ""
    sent: int = field(default=0)

    def chat(self, body: dict[str, Any], **headers: str) -> httpx.Response:
        self.sent += 1
        return httpx.post(
            f"{self.proxy}/v1/chat/completions", json={"model": MODEL} | body, headers=headers, timeout=30
        )

    def serves_at_once(self, bodies: Sequence[dict[str, Any]]) -> None:
        """Fails where clients wait for something downstream: then all of them do, as often as they ask.

        One that is answered sooner than anything downstream is given up shows that they do not, however busy
        this machine is.
        """
        until(
            "an answer that waited for nothing downstream",
            lambda: min(self.first_byte(body) for body in bodies) < SHORTEST_PATIENCE,
        )

    def first_byte(self, body: dict[str, Any]) -> float:
        """Seconds until the first byte of a whole answer, 200."""
        self.sent += 1
        began = time.monotonic()
        with httpx.stream(
            "POST", f"{self.proxy}/v1/chat/completions", json={"model": MODEL} | body, timeout=30
        ) as answer:
            arriving = answer.iter_raw()
            next(arriving)
            waited = time.monotonic() - began
            for _ in arriving:
                pass
        assert answer.status_code == 200
        return waited

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.token}"} | options.pop("headers", {})
        return httpx.request(method, f"{self.api}/api/v1{path}", headers=headers, timeout=30, **options)

    def ledger(self) -> dict[str, Any]:
        answer = self.ask("GET", "/ledger")
        assert answer.status_code == 200, answer.text
        account = answer.json()
        return dict(account["counters"]) | {key: account[key] for key in ("balanced", "problems", "pairs")}

    def verdict(self, tier: str) -> dict[str, Any]:
        answer = self.ask("GET", f"/models/{MODEL}/tiers/{tier}/verdict")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def part(self, *words: str) -> list[int]:
        """Pids of the parts whose command line has all the words."""
        return [
            pid for pid, line in descendants(self.process.pid).items() if all(word in line for word in words)
        ]

    @contextmanager
    def frozen(self, *words: str) -> Iterator[None]:
        """The parts, stopped by SIGSTOP for as long as the block runs."""
        pids = self.part(*words)
        assert pids, f"no part like {words}: {descendants(self.process.pid)}"
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def knows_engines(self, candidates: Sequence[str]) -> bool:
        """Whether the guard has looked at the engines of these tiers and of the baseline."""
        return all(self.verdict(tier)["gates"]["attribution"] != "missing" for tier in candidates)

    def account_on_disk(self) -> LedgerAccount:
        """The ledger as SQL has it: all there is once everything is stopped."""
        database = open_database(f"sqlite:///{self.folder / '.tiergate' / 'tiergate.db'}")
        try:
            return account(database, None)
        finally:
            database.close()

    def stop(self) -> int:
        """SIGTERM, as an operator or an init system would."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=90)


Start = Callable[..., System]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a system: `start(tiers=("bf16", "w8a8"), **sections)`; everything is stopped afterwards."""
    running: list[System] = []
    processes: list[subprocess.Popen[bytes]] = []

    def begin(tiers: tuple[str, ...] = ("bf16", "w8a8"), **sections: Any) -> System:
        backends = {}
        for tier in tiers:
            port = free_port()
            process = Leashed([sys.executable, str(BACKEND), str(port), MODEL])
            processes.append(process)
            backends[tier] = Scripted(url=f"http://127.0.0.1:{port}", process=process)
        for backend in backends.values():
            until("a scripted backend", lambda url=backend.url: httpx.get(f"{url}/health").is_success)
        proxy, admin, api = free_port(), free_port(), free_port()
        config: dict[str, Any] = {
            "models": {
                MODEL: {"ladder": [{"tier": tier, "backends": [backends[tier].url]} for tier in tiers]}
            },
            "mirror": {"sample": "100%"},
            "shadow": {"on_serving": True, "timeout": "30s", "retries": 1},
            "probe": {"per_capture": 2, "min_context_chars": 200, "max_tokens": 32},
            "policy": {
                "margin": "20pp",
                "min_pairs": 20,
                "gates": {"slo": "off", "money": "off", "coverage": "off"},
            },
            "proxy": {"listen": f"127.0.0.1:{proxy}", "admin": f"127.0.0.1:{admin}"},
            "api": {"listen": f"127.0.0.1:{api}"},
        } | sections
        folder = tmp_path / f"system-{len(running)}"
        folder.mkdir()
        (folder / "tiergate.yaml").write_text(yaml.safe_dump(config))
        log = folder / "up.log"
        command = [str(Path(sys.executable).with_name("tiergate")), "up", "-c", str(folder / "tiergate.yaml")]
        with log.open("w") as sink:
            process = Leashed(command, stdout=sink, stderr=subprocess.STDOUT, text=True, cwd=folder)
        system = System(
            folder=folder,
            config=config,
            backends=backends,
            process=process,
            proxy=f"http://127.0.0.1:{proxy}",
            admin=f"http://127.0.0.1:{admin}",
            api=f"http://127.0.0.1:{api}",
            log=log,
        )
        running.append(system)

        def ready() -> bool:
            assert process.poll() is None, f"`tiergate up` gave up:\n{log.read_text()}"
            return (
                httpx.get(f"{system.api}/readyz").is_success
                and httpx.get(f"{system.admin}/readyz").is_success
                and bool(system.part("celery", "replay"))
                and "proxy" in log.read_text()
            )

        until(f"everything up; see {log}", ready, 150)
        system.token = (folder / ".tiergate" / "token").read_text().strip()
        # What engines tell is part of the epoch: earlier pairs belong to one that nothing is asked about.
        until("the engines told who they are", lambda: system.knows_engines(tiers[1:]))
        return system

    yield begin
    for system in running:
        system.stop()
    for process in processes:
        process.terminate()
        process.wait(timeout=PATIENCE)


def extraction(number: int, *, stream: bool = False) -> dict[str, Any]:
    """A request that wants JSON of a schema; another number is another conversation."""
    schema = {
        "type": "object",
        "properties": {"order": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["order"],
    }
    return {
        "messages": [{"role": "user", "content": f"Give the order number {number} as JSON."}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "order", "schema": schema}},
        "stream": stream,
    }


def recall(number: int, *, stream: bool = False) -> dict[str, Any]:
    """A long context with facts that occur once, and an unrelated closing question."""
    filler = " ".join(f"Paragraph {i} of file {number} talks about rivers and bridges." for i in range(12))
    opening = f"The access code of the north room is {4000 + number}."
    facts = f"{opening} {filler} The magic number is {70000 + number}."
    return {
        "messages": [{"role": "user", "content": f"{facts}\n\nSummarise file {number} in a sentence."}],
        "stream": stream,
    }


def question(number: int, *, stream: bool = False) -> dict[str, Any]:
    """A harmless question."""
    return {"messages": [{"role": "user", "content": f"Name {number} things to cook."}], "stream": stream}


def dump(system: System) -> str:
    """What a failing test wants to see."""
    logs = [f"== {path.name}\n{path.read_text()[-3000:]}" for path in system.folder.rglob("*.log")]
    return json.dumps(system.ledger(), indent=1) + "\n".join(logs)
