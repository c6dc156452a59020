"""verdicts.json: the API's own verdicts, and a manifest to repeat them by."""

from __future__ import annotations

import json
from pathlib import Path

import evaluators
from service.client.readings import read_verdict
from service.demo.models import ModelFile
from service.demo.plan import QUICK
from service.demo.published import SMOLLM2
from service.demo.report import Timings, report, write_report
from service.demo.walk import Position, Walked
from service.demo.workload import workload
from tests.demo.scripted import Scripted

SENT = 30


def content() -> dict[str, object]:
    scripted = Scripted(decide=lambda tier, judged: "reject" if tier == "q2_k" else "accept")
    verdicts = tuple(read_verdict(scripted.verdict(tier.name)) for tier in QUICK.ladder[1:])
    last = Position(
        sent=SENT, answered=SENT - 1, judged=SENT - 1, verdicts=verdicts, seconds=99.0, ending="enough"
    )
    return report(
        QUICK,
        Walked(last=last, ledger=scripted.ledger(), failures=("status 503: busy",)),
        source=SMOLLM2,
        models={
            tier.weights: ModelFile(path=Path("m.gguf"), sha256="a" * 64, tensors="1 F32")
            for tier in QUICK.ladder
        },
        prompts=workload(QUICK.load, 5),
        seed=5,
        timings=Timings(prepare=1.5, start=2.5, traffic=99.5),
        configuration="models: {}",
        evaluators=evaluators.ALL,
    )


def test_the_verdicts_are_those_of_the_api() -> None:
    made = content()
    assert made["verdicts"] == [
        Scripted(decide=lambda tier, judged: "accept").verdict("q8_0"),
        Scripted(decide=lambda tier, judged: "reject").verdict("q2_k"),
    ]
    assert made["policy"] == {"criteria": [{"criterion": "refusal", "margin": 0.2, "min_pairs": 20}]}


def test_the_manifest_says_how_to_repeat_the_run() -> None:
    manifest = content()["manifest"]
    assert isinstance(manifest, dict)
    assert manifest["seed"] == 5
    assert manifest["source"]["sha256"] == SMOLLM2.sha256
    assert [tier["tier"] for tier in manifest["tiers"]] == ["f16", "q8_0", "q2_k"]
    assert {tier["sha256"] for tier in manifest["tiers"]} == {"a" * 64}
    assert manifest["traffic"]["kinds"] == {"extraction": 12, "notes": 12, "question": 6}
    assert manifest["traffic"]["answered"] == 29
    assert manifest["traffic"]["failures"] == ["status 503: busy"]
    assert 0 < manifest["traffic"]["streamed"] < SENT
    assert manifest["seconds"] == {"prepare": 1.5, "start": 2.5, "traffic": 99.5}
    assert {"tiergate", "xllamacpp", "gguf", "numpy", "scipy"} <= set(manifest["packages"])
    assert manifest["evaluators"] == {each.name: each.version for each in evaluators.ALL}


def test_the_file_is_written_whole_into_a_directory_that_is_made(tmp_path: Path) -> None:
    made = content()
    path = write_report(tmp_path / "new" / "out", made)
    assert path == tmp_path / "new" / "out" / "verdicts.json"
    assert json.loads(path.read_text(encoding="utf-8")) == made
    assert [left.name for left in path.parent.iterdir()] == ["verdicts.json"]
