from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evaluators
from service.decision.policy import Asked, BaselineAfterApproval, Gate, Hypothesis, Policy, Role, Units
from service.decision.terms import Terms
from service.proxy.config import ProxyConfig, Timeouts
from service.settings import ApiListen, ProbePlan, Settings, SettingsError, ShadowPlan, load
from service.settings.load import LONGEST

Loaded = Callable[..., Settings]
Problems = Callable[..., list[str]]


def test_models_and_backends_suffice(minimal: dict[str, Any], loaded: Loaded, tmp_path: Path) -> None:
    found = loaded(minimal)
    assert [tier.name for tier in found.ladders["qwen"].tiers] == ["bf16", "w8a8"]
    assert found.ladders["qwen"].baseline.model == "qwen"
    assert found.state_dir == tmp_path / ".tiergate"
    assert found.redis_embedded
    assert found.database_url == f"sqlite:///{tmp_path}/.tiergate/tiergate.db"
    assert (found.state_dir / "capture.key").stat().st_mode & 0o777 == 0o600
    assert (found.api, found.shadow, found.probe) == (ApiListen(), ShadowPlan(), ProbePlan())


def test_what_the_file_leaves_out_is_what_the_parts_would_take_themselves(
    minimal: dict[str, Any], loaded: Loaded
) -> None:
    proxy, own = loaded(minimal).proxy, ProxyConfig(ladders={})
    for name in ("timeouts", "clients", "max_request", "forward_paths", "drain_seconds", "half_close"):
        assert getattr(proxy, name) == getattr(own, name), name
    for name in (
        "sample",
        "ttl_seconds",
        "max_body",
        "max_bytes",
        "buffer_bytes",
        "conversation_header",
        "batch",
    ):
        assert getattr(proxy.mirroring, name) == getattr(own.mirroring, name), name
    assert (proxy.listen_port, proxy.admin_port, proxy.processes) == (8080, 8082, 1)


def test_production_asks_for_every_gate_and_every_evaluator(minimal: dict[str, Any], loaded: Loaded) -> None:
    policy = loaded(minimal).policy
    assert dict(policy.gates) == dict.fromkeys(Gate, Asked.REQUIRED)
    assert {each.evaluator: each.hypothesis for each in policy.decisive} == {
        "structured_output": Hypothesis.NON_INFERIOR,
        "long_context_recall": Hypothesis.NON_INFERIOR,
        "refusal": Hypothesis.EQUIVALENT,
    }
    assert {(each.margin, each.min_pairs) for each in policy.criteria} == {(0.01, 300)}
    shown = {each.evaluator: each.hypothesis for each in policy.criteria if each.role is Role.SHOWN}
    assert shown["tool_use"] is Hypothesis.EQUIVALENT
    assert shown["field_agreement"] is Hypothesis.NON_INFERIOR
    assert len(policy.criteria) == len(evaluators.ALL)


def test_a_criterion_overrides_the_policy_and_a_gate_can_be_off(
    minimal: dict[str, Any], loaded: Loaded
) -> None:
    minimal["policy"] = {
        "margin": "2pp",
        "min_pairs": 100,
        "criteria": {"structured_output": None, "refusal": {"margin": "20pp", "hypothesis": "non_inferior"}},
        "gates": {"slo": "off"},
    }
    policy = loaded(minimal).policy
    structured, refusal = policy.decisive
    assert (structured.margin, structured.min_pairs) == (0.02, 100)
    assert (refusal.margin, refusal.hypothesis) == (0.20, Hypothesis.NON_INFERIOR)
    assert policy.gates[Gate.SLO] is Asked.OFF
    assert policy.gates[Gate.MONEY] is Asked.REQUIRED


def test_a_criterion_has_a_role_and_an_end_and_an_epoch_has_its_rules(
    minimal: dict[str, Any], loaded: Loaded
) -> None:
    own = loaded(minimal).policy
    assert {each.role for each in own.criteria} == {Role.DECISIVE, Role.SHOWN}
    assert own == Policy(criteria=own.criteria)
    minimal["policy"] = {
        "criteria": {
            "structured_output": {"max_pairs": "20k"},
            "long_context_recall": {"role": "shown"},
            "refusal": {"role": "muted"},
        },
        "alpha": {"strata": "0.5%"},
        "units": "closed_conversations",
        "idle": "10m",
        "longest": "30d",
        "tenant_share_cap": "40%",
        "baseline_after_approval": "switched_off",
    }
    policy = loaded(minimal).policy
    assert [each.role for each in policy.criteria][:3] == [Role.DECISIVE, Role.SHOWN, Role.MUTED]
    assert [each.max_pairs for each in policy.criteria][:3] == [20_000, None, None]
    assert (policy.alpha_strata, policy.units) == (0.005, Units.CLOSED_CONVERSATIONS)
    assert (policy.idle_seconds, policy.longest_seconds) == (600, 30 * 86400)
    assert policy.tenant_share_cap == 0.4
    assert policy.baseline_after_approval is BaselineAfterApproval.SWITCHED_OFF


def test_a_criterion_that_does_not_exist_is_told_on_its_line_together_with_everything_else(
    problems: Problems,
) -> None:
    found = problems(
        "models: {m: {ladder: [{tier: a, backends: ['http://h:1']}]}}\n"
        "policy:\n"
        "  marging: 1pp\n"
        "  criteria:\n"
        "    refusal: {}\n"
        "    long_context_recal: {margins: 2pp}\n"
    )
    assert [problem.partition(":")[0] for problem in found] == [
        "policy.marging (line 3)",
        "policy.criteria.long_context_recal (line 6)",
        "policy.criteria.long_context_recal.margins (line 6)",
    ]
    assert "did you mean `long_context_recall`?" in found[1]


def test_every_gate_can_be_named(minimal: dict[str, Any], loaded: Loaded) -> None:
    minimal["policy"] = {"gates": {str(gate): "required" for gate in Gate}}
    policy = loaded(minimal).policy
    assert dict(policy.gates) == dict.fromkeys(Gate, Asked.REQUIRED)


def test_gates_written_off_without_quotes_are_off(loaded: Loaded) -> None:
    text = "models: {m: {ladder: [{tier: a, backends: ['http://h:1']}]}}\npolicy: {gates: {slo: off}}\n"
    assert loaded(text).policy.gates[Gate.SLO] is Asked.OFF


def test_every_section_reaches_its_part(minimal: dict[str, Any], loaded: Loaded) -> None:
    minimal["models"]["qwen"]["slo"] = {"ttft": "1500ms", "tpot": "80ms"}
    minimal["models"]["qwen"]["probe"] = {"max_tokens": 1024}
    minimal["models"]["qwen"]["ladder"][1] |= {
        "model": "qwen-w8a8",
        "shadow": [{"url": "http://gpu-c:8000/", "max_concurrency": 4}],
        "price_per_hour": 60,
        "declares": {"weights": "int8"},
    }
    minimal |= {
        "mirror": {"sample": "10%", "capture": {"ttl": "1h", "max_body": "1MiB"}},
        "shadow": {"on_serving": True, "timeout": "90s", "tokens_per_day": "20M", "repeats": "2%"},
        "probe": {"per_capture": 2, "extra_body": {"seed": 1}, "tokens_per_day": "5M", "planted": 2},
        "proxy": {"listen": "0.0.0.0:9000", "timeouts": {"total": "none"}, "forward_paths": ["/rerank"]},
        "api": {"listen": "[::1]:9001", "allowed_hosts": ["tiergate.example"]},
        "money": {
            "currency": "EUR",
            "failure": {
                **{"retry": "1x", "escalate": "8x", "escalate_share": "25%"},
                "then": [{"step": "person", "share": "4%", "price": 15}],
            },
        },
        "policy": {
            **minimal.get("policy", {}),
            "alpha": {"gates": "2%"},
            "load_runs": {"slo_margin": "0.5pp", "blocks": 12, "power": "85%", "block_correlation": 0},
        },
    }
    found = loaded(minimal)
    tier = found.ladders["qwen"].tier("w8a8")
    assert (tier.model, tier.price_per_hour, tier.declares) == ("qwen-w8a8", 60, {"weights": "int8"})
    assert (tier.shadow[0].url, tier.shadow[0].max_concurrency) == ("http://gpu-c:8000", 4)
    assert (found.proxy.mirroring.sample, found.proxy.mirroring.ttl_seconds) == (0.1, 3600)
    assert found.shadow == ShadowPlan(
        on_serving=True, timeout_seconds=90, tokens_per_day=20_000_000, repeats=0.02
    )
    assert found.probe_of("qwen") == ProbePlan(
        per_capture=2, planted=2, max_tokens=1024, extra_body={"seed": 1}, tokens_per_day=5_000_000
    )
    assert (found.proxy.listen_host, found.proxy.listen_port) == ("0.0.0.0", 9000)
    assert found.proxy.timeouts == Timeouts(total=None)
    assert found.proxy.forward_paths[-1] == "/rerank"
    assert (found.api.host, found.api.port) == ("::1", 9001)
    assert "tiergate.example" in found.api.allowed_hosts
    assert "localhost" in found.api.allowed_hosts
    assert found.slo["qwen"].ttft_seconds == 1.5
    assert found.money.currency == "EUR"
    assert found.money.failure.weight == 3  # a retry, and a quarter of them at 8
    assert found.money.failure.price == pytest.approx(0.15)  # a hundredth of them at 15
    assert found.policy.alpha_gates == 0.02
    assert found.policy.load_runs == Terms(
        slo_margin=0.005, least_blocks=12, power=0.85, block_correlation=0, failure=found.money.failure
    )


def test_a_failure_may_have_a_weight_instead_of_a_chain(minimal: dict[str, Any], loaded: Loaded) -> None:
    minimal["policy"] = {**minimal.get("policy", {}), "load_runs": {"failure_weight": "2.5x"}}
    found = loaded(minimal)
    assert found.policy.load_runs.failure.weight == 2.5
    assert found.money.failure.weight == 4
    assert found.money.currency == "CNY"


def test_the_environment_goes_before_the_file(
    minimal: dict[str, Any], loaded: Loaded, tmp_path: Path
) -> None:
    minimal["store"] = {"redis": "redis://from-file:6379/0", "state_dir": "elsewhere"}
    secret = tmp_path / "database_url"
    secret.write_text("postgresql://u:p@db/tiergate\n")
    found = loaded(
        minimal,
        {
            "TIERGATE_REDIS_URL": "redis://127.0.0.1:7000/0",
            "TIERGATE_BROKER_URL": "rediss://broker:7001/1",
            "TIERGATE_DATABASE_URL_FILE": str(secret),
            "TIERGATE_STATE_DIR": str(tmp_path / "state"),
            "TIERGATE_PROXY_LISTEN": "127.0.0.1:1",
            "TIERGATE_ADMIN_LISTEN": "127.0.0.1:2",
            "TIERGATE_API_LISTEN": "127.0.0.1:3",
        },
    )
    assert (found.redis_url, found.broker_url) == ("redis://127.0.0.1:7000/0", "rediss://broker:7001/1")
    assert found.proxy.redis_url == found.redis_url
    assert not found.redis_embedded
    assert found.database_url == "postgresql://u:p@db/tiergate"
    assert found.state_dir == tmp_path / "state"
    assert (found.proxy.listen_port, found.proxy.admin_port, found.api.port) == (1, 2, 3)


def test_the_broker_is_redis_unless_it_is_named(minimal: dict[str, Any], loaded: Loaded) -> None:
    found = loaded(minimal, {"TIERGATE_REDIS_URL": "redis://127.0.0.1:7000/0"})
    assert found.broker_url == found.redis_url == "redis://127.0.0.1:7000/0"


def test_other_commands_find_the_server_that_up_announces(minimal: dict[str, Any], loaded: Loaded) -> None:
    state_dir = loaded(minimal).state_dir
    (state_dir / "redis.url").write_text("redis://:secret@127.0.0.1:7777/0\n")
    found = loaded(minimal)
    assert found.redis_url == "redis://:secret@127.0.0.1:7777/0"
    assert found.redis_embedded


def test_the_file_is_named_by_argument_then_environment_then_custom(
    minimal: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.yaml", "b.yaml", "tiergate.yaml"):
        (tmp_path / name).write_text(yaml.safe_dump(minimal))
    monkeypatch.chdir(tmp_path)
    assert load(Path("a.yaml"), {"TIERGATE_CONFIG": "b.yaml"}).path == tmp_path / "a.yaml"
    assert load(None, {"TIERGATE_CONFIG": "b.yaml"}).path == tmp_path / "b.yaml"
    assert load(None, {}).path == tmp_path / "tiergate.yaml"


def test_a_missing_file_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=rf"`tiergate init {tmp_path}/missing\.yaml` writes one"):
        load(tmp_path / "missing.yaml", {})


def test_a_directory_and_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load(tmp_path, {})
    path = tmp_path / "tiergate.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="not UTF-8"):
        load(path, {})


@pytest.mark.parametrize("place", ["/dev/zero", ""])
def test_what_is_far_too_long_is_not_read(place: str, tmp_path: Path) -> None:
    path = Path(place or tmp_path / "tiergate.yaml")
    if not place:
        path.write_text(f"# {'x' * (LONGEST - 2)}\n")
    with pytest.raises(SettingsError, match="longer than 2 MiB, and no configuration"):
        load(path, {})


def test_line_ends_of_other_systems_are_line_ends(write: Callable[[object], Path]) -> None:
    path = write("")
    for end in ("\r\n", "\r"):
        path.write_bytes(f"policy:{end}  margin: 1pp{end}  margn: 1pp{end}".encode())
        with pytest.raises(SettingsError, match=r"policy.margn \(line 3\)"):
            load(path, {})


def test_text_that_is_no_yaml_is_told_with_its_line(problems: Problems) -> None:
    (problem,) = problems("models:\n  qwen: [\n")
    assert problem.startswith("line 3: this is not YAML")


def test_all_problems_are_told_at_once_in_the_order_of_the_file(problems: Problems) -> None:
    found = problems(
        "models:\n"
        "  qwen:\n"
        "    ladder:\n"
        "      - tier: bf16\n"
        "        backends: [http://gpu-a:8000/v1]\n"
        "        prise_per_hour: 60\n"
        "mirror:\n"
        "  sample: 500%\n"
        "  tokens_per_day: 20M\n"
        "  sample: 5%\n"
        "policy: {on_harm: panic, gates: {mony: off}}\n"
        "proxy: 8080\n"
    )
    assert [problem.partition(":")[0] for problem in found] == [
        "models.qwen.ladder[0].backends[0] (line 5)",
        "models.qwen.ladder[0].prise_per_hour (line 6)",
        "mirror.sample (line 8)",
        "mirror.tokens_per_day (line 9)",
        "mirror.sample (line 10)",
        "policy.gates.mony (line 11)",
        "policy.on_harm (line 11)",
        "proxy (line 12)",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": {}}, "models (line 1): needs at least one entry"),
        (
            {"models": None},
            "models (line 1): expected a mapping of names to what they stand for, got nothing",
        ),
        ({"models": {"a b": {"ladder": [{"tier": "x", "backends": ["http://h:1"]}]}}}, "without spaces"),
        ({"models": {"a/../b": {"ladder": [{"tier": "x", "backends": ["http://h:1"]}]}}}, "are no names"),
        ({"models": {"m": {"ladder": [{"tier": "..", "backends": ["http://h:1"]}]}}}, "are no names"),
        ({"policy": {"criteria": {"structured": {}}}}, "did you mean `structured_output`?"),
        (
            {"policy": {"criteria": {"refusal": {"role": "mute"}}}},
            "'shown' or 'muted', got 'mute'",
        ),
        ({"policy": {"criteria": {"refusal": {"role": "muted"}}}}, "without a decisive criterion"),
        ({"policy": {"criteria": {"refusal": {"max_pairs": 200}}}}, "at least its min_pairs (300), got 200"),
        ({"policy": {"criteria": {"refusal": {"max_pair": 500}}}}, "did you mean `max_pairs`?"),
        ({"policy": {"alpha": {"strata": "0%"}}}, "an error rate lies above 0% and below 50%, got 0%"),
        ({"policy": {"alpha": {"stratum": "1%"}}}, "did you mean `strata`?"),
        ({"policy": {"units": "requests"}}, "'first_sampled' or 'closed_conversations', got 'requests'"),
        ({"policy": {"idle": "none"}}, "policy.idle (line"),
        ({"policy": {"idle": "0s"}}, "policy.idle (line"),
        ({"policy": {"longest": "30"}}, "'30' is not a duration"),
        ({"policy": {"tenant_share_cap": "0%"}}, "this share lies above 0%, got 0%"),
        ({"policy": {"baseline_after_approval": "off"}}, "'kept' or 'switched_off', got 'off'"),
        ({"policy": {"longest": "0s"}}, "policy.longest (line"),
        ({"policy": {"margin": "0pp"}}, "a margin lies above 0pp and below 100pp, got 0pp"),
        ({"policy": {"margin": "100pp"}}, "a margin lies above 0pp and below 100pp, got 100pp"),
        ({"policy": {"alpha": {"accept": "0%"}}}, "an error rate lies above 0% and below 50%, got 0%"),
        ({"policy": {"min_pairs": 0}}, "policy.min_pairs"),
        ({"policy": {"gates": {"quality": "off"}}}, "policy.gates.quality (line"),
        ({"proxy": {"listen": "127.0.0.1:8081"}}, "must be three different addresses"),
        ({"proxy": {"default_model": "qwem"}}, "did you mean `qwen`?"),
        ({"store": {"redis": "http://h"}}, "expected redis://HOST:PORT"),
        ({"store": {"redis": "redis://h:port"}}, "expected redis://HOST:PORT"),
        ({"store": {"redis": "redis://h/db"}}, "expected redis://HOST:PORT"),
        ({"models": {"/qwen": {"ladder": [{"tier": "x", "backends": ["http://h:1"]}]}}}, "with a slash"),
        ({"store": {"database": "mysql://h/d"}}, "expected sqlite:////PATH/tiergate.db or postgresql://"),
        ({"shadow": {"timeout": "0s"}}, "shadow.timeout"),
        ({"money": {"currency": "euro"}}, "money.currency"),
        ({"money": {"failure": {"then": [{"step": "person"}]}}}, "a step says its `costs`"),
        ({"money": {"failure": {"then": [{"stp": "x", "costs": "1x"}]}}}, "did you mean `step`?"),
        ({"money": {"failure": {"then": [{"step": "x", "price": -1}]}}}, "money.failure.then"),
        ({"money": {"failure": {"then": [{"step": "x", "price": float("inf")}]}}}, "money.failure.then"),
        ({"policy": {"alpha": {"gates": "50%"}}}, "an error rate lies above 0% and below 50%, got 50%"),
        ({"policy": {"load_runs": {"slo_margin": "0pp"}}}, "a margin lies above 0pp and below 100pp"),
        ({"money": {"failure": {"retry": "2000000000x"}}}, "a multiple lies between 0x and 1,000,000,000x"),
        ({"money": {"failure": {"then": [{"step": "x", "price": 1e300}]}}}, "money.failure.then[0].price"),
        ({"money": {"operations_per_request": float("inf")}}, "money.operations_per_request (line"),
        ({"money": {"operations_per_request": "inf"}}, "money.operations_per_request (line"),
        ({"policy": {"load_runs": {"power": "70%"}}}, "must rise within (0, 1)"),
        ({"policy": {"load_runs": {"blocks": 1}}}, "policy.load_runs.blocks"),
        ({"policy": {"load_runs": {"block_correlation": 2}}}, "policy.load_runs.block_correlation"),
        ({"policy": {"load_runs": {"failure_wait": "2x"}}}, "did you mean `failure_weight`?"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(
    change: dict[str, object], message: str, minimal: dict[str, Any], problems: Problems
) -> None:
    assert any(message in problem for problem in problems(minimal | change)), problems(minimal | change)


@pytest.mark.parametrize(
    ("tier", "message"),
    [
        ({"tier": "bf16"}, "the key `backends` is missing here"),
        ({"tier": "bf16", "backends": []}, "needs at least one entry"),
        ({"tier": "bf16", "backends": ["gpu-a:8000"]}, "expected http://HOST:PORT"),
        ({"tier": "bf16", "backends": ["http://u:p@gpu-a:8000"]}, "credentials do not belong in a URL"),
        ({"tier": "bf16", "backends": ["http://gpu-a:port"]}, "expected http://HOST:PORT"),
        ({"tier": "bf16", "backends": ["http://h:1/v1"]}, "leave out '/v1':"),
        ({"tier": "bf16", "backends": ["http://localhost:8080"]}, "is the proxy itself"),
        ({"tier": "bf16", "backends": ["http://h:1"], "shadow": ["http://127.0.0.1:8080"]}, "proxy itself"),
        ({"tier": "bf16", "backends": ["http://a:1", "http://a:1"]}, "stands in this list twice"),
        ({"tier": "bf16", "backends": [{"url": "http://a:1", "api_key": "x"}]}, "api_key_file"),
        (
            {"tier": "bf16", "backends": [{"url": "http://a:1", "api_key_file": "nowhere"}]},
            "there is no file",
        ),
        ({"tier": "bf16", "backends": [{"url": "http://a:1", "api_key_env": "NOWHERE"}]}, "has no NOWHERE"),
        (
            {"tier": "bf16", "backends": [{"url": "http://a:1", "api_key_env": "A", "api_key_file": "b"}]},
            "not both",
        ),
        ({"tier": 8, "backends": ["http://a:1"]}, "write it in quotes"),
        ({"tier": "bf16", "backends": ["http://a:1"], "declares": {"bits": 8}}, "write it in quotes"),
    ],
)
def test_a_tier_that_cannot_serve_is_refused(
    tier: dict[str, object], message: str, minimal: dict[str, Any], problems: Problems
) -> None:
    minimal["models"]["qwen"]["ladder"] = [tier]
    assert any(message in problem for problem in problems(minimal)), problems(minimal)


def test_a_tier_named_twice_names_the_first(minimal: dict[str, Any], problems: Problems) -> None:
    minimal["models"]["qwen"]["ladder"][1]["tier"] = "bf16"
    assert any("'bf16' already names rung 0" in problem for problem in problems(minimal))


@pytest.mark.parametrize(
    ("variable", "written", "message"),
    [
        ("TIERGATE_REDIS_URL", "http://:hush@h", "TIERGATE_REDIS_URL: expected redis://"),
        ("TIERGATE_DATABASE_URL", "mysql://:hush@h", "TIERGATE_DATABASE_URL: expected sqlite"),
        ("TIERGATE_REDIS_URL_FILE", "/no/where", "TIERGATE_REDIS_URL_FILE: there is no file"),
        ("TIERGATE_API_LISTEN", "8081", "TIERGATE_API_LISTEN: expected HOST:PORT"),
        ("TIERGATE_CAPTURE_KEY_FILE", "/no/where", "capture key: there is no file /no/where"),
    ],
)
def test_a_wrong_variable_is_named_and_no_secret_repeated(
    variable: str, written: str, message: str, minimal: dict[str, Any], problems: Problems
) -> None:
    (problem,) = problems(minimal, {variable: written})
    assert problem.startswith(message)
    assert "hush" not in problem


def test_a_wrong_url_in_the_file_does_not_repeat_its_password(
    minimal: dict[str, Any], problems: Problems
) -> None:
    minimal["store"] = {"redis": "http://:hush@h", "database": "mysql://:hush@h"}
    assert not any("hush" in problem for problem in problems(minimal))


def test_a_state_directory_that_cannot_be_written_says_what_to_set(
    minimal: dict[str, Any], problems: Problems, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    (problem,) = problems(minimal, {"TIERGATE_STATE_DIR": str(blocked / "below")})
    assert "set TIERGATE_STATE_DIR" in problem


_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8))
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.text(max_size=6), st.sampled_from(["models", "ladder", "tier", "backends", "policy"])
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(st.dictionaries(st.sampled_from(["models", "mirror", "policy", "proxy", "store", "other"]), _TREES))
def test_whatever_stands_in_the_file_is_read_or_explained(tmp_path: Path, content: dict[str, object]) -> None:
    path = tmp_path / "tiergate.yaml"
    path.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    error = refusal(path, {"TIERGATE_STATE_DIR": os.fspath(tmp_path / "state")})
    assert error is None or (error.problems and all(problem.message for problem in error.problems))


def refusal(path: Path, environ: dict[str, str]) -> SettingsError | None:
    try:
        load(path, environ)
    except SettingsError as error:
        return error
    return None


def test_what_cannot_be_seen_in_a_key_is_spelled_out(minimal: dict[str, Any], problems: Problems) -> None:
    """Marks of direction and escapes would paint another message than the one that is meant."""
    (told,) = problems(minimal | {"pol\u202eici\x1b[31mes": 1})
    assert told.isprintable()
    assert "pol\\u202eici\\x1b[31mes" in told
    tier = {"tier": "x", "backends": ["http://127.0.0.1:1"], "wei\u200bght": 1}
    told = problems(minimal | {"models": {"q\u202e": {"ladder": [tier]}}})
    assert all(line.isprintable() for line in told)
    assert any("a name is printable text without spaces" in line for line in told)
