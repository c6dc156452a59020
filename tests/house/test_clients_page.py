"""`docs/clients.md` and the ledger's table say everything that the proxy can say, and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from service.proxy.entry.scan import Trouble
from service.store.redis.counters import Dropped, Skipped

ROOT = Path(__file__).parents[2]
NAMED_FIRST = {"unavailable", "bad_gateway", "gateway_timeout", "Overdue", "_too_much"}
"""What makes a refusal, or says why there will be one, with its code as the first argument."""


def rows(page: str, heading: str) -> list[str]:
    """The first cells of the table under a heading."""
    section = (ROOT / "docs" / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [
        code
        for line in section.splitlines()
        if line.startswith("| `")
        for code in re.findall(r"`([^`]+)`", line.split("|")[1])
    ]


def codes() -> Iterator[str]:
    for path in (ROOT / "service" / "proxy").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            named = [each.value for each in node.keywords if each.arg == "code"]
            if getattr(node.func, "id", "") in NAMED_FIRST:
                named += node.args[:1]
            yield from (str(each.value) for each in named if isinstance(each, ast.Constant))


def test_every_code_of_a_refusal_has_its_row_and_every_row_a_code() -> None:
    assert sorted(rows("clients.md", "Refusals")) == sorted({*codes(), *Trouble})


def test_every_header_of_ours_that_clients_meet_is_named() -> None:
    found = {
        name
        for path in (ROOT / "service" / "proxy").rglob("*.py")
        for name in re.findall(r"b?\"(x-tiergate-[a-z-]+)", path.read_text())
    }
    told = {
        header.partition(":")[0]
        for heading in ("Headers a client may send", "Headers a client gets")
        for header in rows("clients.md", heading)
    }
    assert found >= {"x-tiergate-shadow", "x-tiergate-tier", "x-tiergate-error"}
    assert found <= told | {"x-tiergate-replay"}


def test_every_reason_of_the_ledger_has_its_row() -> None:
    assert rows("operations.md", "The mirror ledger") == [*Skipped, *Dropped]
