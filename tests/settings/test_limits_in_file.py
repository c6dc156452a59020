"""Limits are put into a configuration's text, and every other line stays as it is."""

from __future__ import annotations

from importlib import resources

import pytest
import yaml

from service.settings.limits_in_file import CannotEdit, Line, limits_of, with_limits

LINES = (
    Line(key="concurrency", value="64", comment="what the cache holds: 64"),
    Line(key="queue_timeout", value="1500ms", comment="the SLO"),
    Line(key="kv_guard", value="{above: 93%, below: 88%}", comment="room for one"),
)
SAID = {"concurrency": 64, "queue_timeout": "1500ms", "kv_guard": {"above": "93%", "below": "88%"}}
LADDER = """\
    ladder:
      - tier: bf16
        backends: [http://a:8000]   # the first
      - tier: w8a8
        backends:
          - http://b:8000
"""
PLAIN = f"""\
# mine
models:
  qwen:  # the only one
    # of two tiers
{LADDER}
  # and another
  70:
    ladder: [{{tier: bf16, backends: [http://c:8000]}}]
proxy:
  processes: 2
"""


def said(text: str, model: str = "qwen") -> object:
    return yaml.safe_load(text)["models"][model]["limits"]


def added(before: str, after: str) -> list[str]:
    """Lines that are new, all others being there in their order."""
    rest = iter(after.splitlines())
    new = []
    for line in before.splitlines():
        for other in rest:
            if other == line:
                break
            new.append(other)
        else:
            pytest.fail(f"{line!r} is gone")
    return [*new, *rest]


def test_they_stand_behind_the_model_s_other_keys_and_nothing_else_changes() -> None:
    after = with_limits(PLAIN, "qwen", LINES)
    assert said(after) == SAID
    assert added(PLAIN, after) == [
        "    limits:",
        "      concurrency: 64  # what the cache holds: 64",
        "      queue_timeout: 1500ms  # the SLO",
        "      kv_guard: {above: 93%, below: 88%}  # room for one",
    ]
    assert after.index("limits:") < after.index("# and another")


def test_a_model_whose_name_is_a_number_is_found() -> None:
    assert yaml.safe_load(with_limits(PLAIN, "70", LINES))["models"][70]["limits"] == SAID


@pytest.mark.parametrize(
    "before",
    [
        "    limits: {concurrency: 3, max_request: 8MiB}   # old\n",
        "    limits:\n      max_request: 8MiB  # stays\n      concurrency: 3\n      # gone\n\n",
        "    limits:\n      kv_guard:\n        above: 50%\n        every: 2s\n      max_request: 8MiB\n",
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_what_was_limited_before_gives_way_and_other_limits_stay(before: str, first: bool) -> None:
    parts = (before, LADDER) if first else (LADDER, before)
    text = f"models:\n  qwen:\n{''.join(parts)}# behind it\nproxy:\n  processes: 2\n"
    after = with_limits(text, "qwen", LINES)
    assert said(after) == {**SAID, "max_request": "8MiB"}
    assert LADDER in after
    assert "# behind it\nproxy:\n  processes: 2\n" in after


def test_an_empty_key_is_filled() -> None:
    text = f"models:\n  qwen:\n    limits:\n{LADDER}"
    assert said(with_limits(text, "qwen", LINES)) == SAID


def test_the_example_that_comes_with_tiergate_can_be_limited() -> None:
    text = resources.files("service.settings").joinpath("example.yaml").read_text(encoding="utf-8")
    after = with_limits(text, "my-model", LINES)
    assert said(after, "my-model") == SAID
    assert len(added(text, after)) == 4


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (PLAIN.replace("qwen:", "llama:"), "there is no 'qwen' in it"),
        ("proxy: {}\n", "there is no 'models' in it"),
        ("models: {qwen: {ladder: [{tier: a, backends: [http://a]}]}}\n", "not written on lines of its own"),
        (f"x: &x\n{LADDER}models:\n  qwen: *x\n", "alias"),
        ("models: [\n", "not YAML"),
        (
            f"models:\n  qwen:\n    slo: {{ttft: soon, tpot: 1s}}\n{LADDER}",
            "it is not valid: models.qwen.slo",
        ),
        (PLAIN.replace("processes: 2", "processes: 65"), "65 processes cannot share it"),
        (f"models:\n  qwen:\n{LADDER}  qwen:\n{LADDER}", "already set"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(text: str, why: str) -> None:
    with pytest.raises(CannotEdit, match=why):
        with_limits(text, "qwen", LINES)


@pytest.mark.parametrize("model", ["qwen", "client/m", "70", "a: b", "null"])
def test_alone_they_are_a_configuration_to_paste(model: str) -> None:
    assert yaml.safe_load(limits_of(model, LINES)) == {"models": {model: {"limits": SAID}}}
