"""The table of proxy cases names tests that exist, and every test of the case files."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
TABLE = (TESTS.parent / "docs" / "proxy-cases.md").read_text()
NAMED = set(re.findall(r"`(\w+/test_\w+\.py)::(test_\w+)`", TABLE))


def names_in(path: Path) -> set[str]:
    return set(re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE))


def test_every_test_that_the_table_names_exists() -> None:
    assert len(NAMED) > 100
    missing = [(file, name) for file, name in sorted(NAMED) if name not in names_in(TESTS / file)]
    assert missing == []


def test_every_row_names_a_test() -> None:
    rows = [line for line in TABLE.splitlines() if line.startswith("| ") and "shown by" not in line]
    assert [row for row in rows if "::test_" not in row] == []


def test_every_case_is_in_the_table() -> None:
    cases = sorted((TESTS / "proxy").glob("test_cases_*.py"))
    here = {(f"proxy/{path.name}", name) for path in cases for name in names_in(path)}
    assert here - NAMED == set()
