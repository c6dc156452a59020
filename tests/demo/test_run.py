"""The whole demo on a model of nonsense: every process, every step, some seconds."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from service.client.readings import read_verdict
from service.decision.policy import Role
from service.decision.verdict import Decision
from service.demo.plan import QUICK
from service.demo.run import Wanted, run
from service.demo.workload import Load
from service.launch import StopSignals
from tests.demo.conftest import Index

SMALL = replace(
    QUICK,
    ladder=QUICK.ladder[:2],
    load=Load(extractions=3, notes=3, questions=2, sentences=11, facts=3),
)


@pytest.mark.acceptance
def test_a_run_ends_with_verdicts_a_report_and_nothing_left_running(tmp_path: Path, index: Index) -> None:
    console = Console(file=io.StringIO(), width=160)
    run(
        Wanted(plan=SMALL, seed=1, stay=False, report_to=tmp_path / "out", source=index.source),
        {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        StopSignals(),
        console,
    )
    written = json.loads((tmp_path / "out" / "verdicts.json").read_text(encoding="utf-8"))
    (verdict,) = (read_verdict(document).verdict for document in written["verdicts"])
    # Eight requests decide nothing, whatever was answered.
    assert verdict.decision is Decision.UNDECIDED
    decisive = [finding for finding in verdict.findings if finding.role is Role.DECISIVE]
    counted = {finding.criterion: finding.n for finding in decisive}
    assert counted == {"structured_output": 3, "long_context_recall": 9, "refusal": 8}
    counters = written["ledger"]["counters"]
    assert (counters["seen"], counters["sampled"], counters["processed"]) == (8, 8, 8)
    assert written["ledger"]["balanced"]
    assert written["manifest"]["traffic"]["ended_because"] == "every prompt was sent"
    assert written["manifest"]["source"]["sha256"] == index.source.sha256
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "smollm2 / q8_0: undecided" in said
    assert "slo not asked" in said
    assert list((tmp_path / "cache" / "tiergate" / "demo").iterdir()) == []
