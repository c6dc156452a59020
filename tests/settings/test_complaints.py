"""Any misspelt key, anywhere, is found on its line and answered with the nearest valid one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from service.settings import SettingsError, load
from service.settings.complaints import all_places, valid_keys
from service.settings.nearest import distance
from service.settings.problems import Place


def written_keys(content: object, place: Place = ()) -> list[Place]:
    """Every key of a fixed name in a configuration."""
    found: list[Place] = []
    if isinstance(content, dict):
        for key, inner in content.items():
            if key in valid_keys(place):
                found.append((*place, key))
            found += written_keys(inner, (*place, key))
    elif isinstance(content, list):
        for index, inner in enumerate(content):
            found += written_keys(inner, (*place, index))
    return found


SMALL: dict[str, Any] = {
    "models": {
        "qwen": {
            "slo": {"ttft": "1500ms", "tpot": "80ms"},
            "probe": {"max_tokens": 1024},
            "ladder": [
                {
                    "tier": "bf16",
                    "backends": [{"url": "http://a:1", "max_concurrency": 3}],
                    "shadow": ["http://b:1"],
                    "price_per_hour": 3,
                }
            ],
        }
    },
    "mirror": {"sample": "5%", "conversation_header": "x-id", "capture": {"ttl": "1h", "max_bytes": "1GiB"}},
    "shadow": {"on_serving": True, "concurrency": 2},
    "policy": {
        "alpha": {"accept": "5%"},
        "criteria": {"refusal": {"margin": "1pp"}},
        "gates": {"coverage": "off"},
        "max_unscored": "1%",
    },
    "money": {"failure": {"escalate_share": "10%"}},
    "proxy": {"timeouts": {"first_byte": "none"}, "clients": {"keep_alive": "9s"}, "processes": 2},
    "api": {"allowed_hosts": ["h"]},
    "store": {"state_dir": "s"},
}
LETTERS = "abcdefghijklmnopqrstuvwxyz_"


def misspelt(key: str, position: int, letter: str, how: str) -> str:
    at = position % len(key)
    match how:
        case "left out":
            return key[:at] + key[at + 1 :]
        case "too many":
            return key[:at] + letter + key[at:]
        case "other":
            return key[:at] + letter + key[at + 1 :]
        case "swapped":
            return key[:at] + key[at + 1 : at + 2] + key[at] + key[at + 2 :]
    raise AssertionError(how)


def renamed(content: Any, place: Place, name: str) -> Any:
    step, *rest = place
    if isinstance(content, list):
        return [renamed(each, tuple(rest), name) if n == step else each for n, each in enumerate(content)]
    return {
        (name if key == step and not rest else key): (
            renamed(each, tuple(rest), name) if key == step and rest else each
        )
        for key, each in content.items()
    }


@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(
    st.sampled_from(written_keys(SMALL)),
    st.integers(0, 30),
    st.sampled_from(LETTERS),
    st.sampled_from(["left out", "too many", "other", "swapped"]),
)
def test_a_misspelt_key_is_found_where_it_stands_and_the_nearest_is_named(
    tmp_path: Path, place: Place, position: int, letter: str, how: str
) -> None:
    meant = str(place[-1])
    wrong = misspelt(meant, position, letter, how)
    assume(wrong and wrong not in valid_keys(place[:-1]) and not wrong.isdecimal())
    path = tmp_path / "tiergate.yaml"
    path.write_text(yaml.safe_dump(renamed(SMALL, place, wrong), sort_keys=False), encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load(path, {})
    (problem,) = [each for each in caught.value.problems if each.place == (*place[:-1], wrong)]
    lines = path.read_text().splitlines()
    assert problem.line is not None
    assert wrong in lines[problem.line - 1]
    suggested = re.search(r"did you mean `(\w+)`", problem.message)
    if suggested is None:
        # Several changes away from everything here, and valid at another place.
        assert "it belongs at" in problem.message
    else:
        assert distance(wrong, suggested[1]) <= distance(wrong, meant)


def test_a_key_that_belongs_elsewhere_is_sent_there(minimal: dict[str, Any], problems: Any) -> None:
    minimal["mirror"] = {"on_serving": True}
    (problem,) = problems(minimal)
    assert "it belongs at `shadow.on_serving`" in problem


def test_every_place_of_the_shape_has_valid_keys_around_it() -> None:
    for *around, key in all_places():
        if key != "*":
            assert key in valid_keys(tuple(around)), (around, key)


def test_a_section_that_is_a_plain_value_lists_its_keys(minimal: dict[str, Any], problems: Any) -> None:
    minimal["proxy"] = 8080
    (problem,) = problems(minimal)
    assert "expected a mapping with the keys " in problem
    assert " admin, admin_hosts, clients, " in problem


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"models: {q: {ladder: {tier: a}}}", "models.q.ladder (line 1): expected a list: [ONE, ANOTHER]"),
        ("models:\n  q: é\n".encode("latin-1"), "line 2: this is not UTF-8 text: save it as UTF-8"),
        ("models: {}".encode("utf-16"), "line 1: this is not UTF-8 text: save it as UTF-8"),
    ],
)
def test_what_is_easily_got_wrong_is_told_with_what_to_do(
    written: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "tiergate.yaml"
    path.write_bytes(written)
    with pytest.raises(SettingsError) as refused:
        load(path, {})
    assert message in str(refused.value)


def test_files_of_other_systems_are_read(tmp_path: Path) -> None:
    path = tmp_path / "tiergate.yaml"
    text = "models:\n  q:\n    ladder: [{tier: a, backends: ['http://h:1']}]\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert set(load(path, {}).ladders) == {"q"}
