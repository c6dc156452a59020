"""A real proxy: parent and children, started as an operator's command would."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from service.proxy.config import ProxyConfig
from tests.leash import Leashed
from tests.patience import PATIENCE
from tests.proxy.raw_client import RawClient, post
from tests.proxy.standing import ladder

RUN = """
import pickle, sys
from service.proxy.processes.run import run
sys.exit(run(pickle.load(sys.stdin.buffer)))
"""


@dataclass
class Running:
    """A proxy in processes of its own."""

    process: subprocess.Popen[bytes]
    port: int
    admin: str

    async def connect(self) -> RawClient:
        return RawClient(*await asyncio.open_connection("127.0.0.1", self.port))

    async def ask(self, request: bytes = post()) -> int:
        client = await self.connect()
        try:
            return (await client.ask(request)).status
        finally:
            client.close()

    async def tier(self) -> str:
        """Who serves a request."""
        client = await self.connect()
        try:
            answered = await client.ask(post())
            assert answered.status == 200
            return answered.header(b"x-tiergate-tier")[0].decode()
        finally:
            client.close()

    async def page(self, path: str) -> tuple[int, str]:
        return await asyncio.to_thread(self._page, path)

    def _page(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.admin + path, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    async def metrics(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        _, text = await self.page("/metrics")
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    async def counted(self, name: str, **labels: str) -> float | None:
        """A sample of the metrics page."""
        return (await self.metrics()).get((f"tiergate_proxy_{name}", frozenset(labels.items())))

    async def until_counted(self, name: str, value: float, **labels: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while await self.counted(name, **labels) != value:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)

    async def until(self, path: str, status: int) -> str:
        async with asyncio.timeout(PATIENCE):
            while True:
                got, text = await self.page(path)
                if got == status:
                    return text
                await asyncio.sleep(0.05)

    @property
    def children(self) -> set[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return {int(pid) for pid in path.read_text().split()}

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


def start(config: ProxyConfig) -> Running:
    process = Leashed([sys.executable, "-c", RUN], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stderr is not None
    with process.stdin:
        pickle.dump(config, process.stdin)
    line = process.stderr.readline().decode()
    if "serving" not in line:
        process.wait(PATIENCE)
        process.stderr.close()
        raise RuntimeError(line)
    words = line.replace(",", "").split()
    urls = [word for word in words if word.startswith("http://")]
    return Running(process, int(urls[0].rpartition(":")[2]), urls[1])


@contextlib.contextmanager
def running(config: ProxyConfig, *urls: str) -> Iterator[Running]:
    """With a model `m` on these backends, or the models of the configuration."""
    proxy = start(replace(config, ladders={"m": ladder(*urls)}) if urls else config)
    try:
        yield proxy
    finally:
        if proxy.process.poll() is None:
            proxy.process.kill()
            proxy.process.wait(PATIENCE)
        assert proxy.process.stderr is not None
        proxy.process.stderr.close()
