from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.fleet import Backend, Ladder, Slo, Tier
from service.store.load.job_terms import CannotBegin, JobTerms, begin, unlike
from service.store.load.jobs import Cause, Job, JobState, end_job
from service.store.load.manifest import JobPlan, Manifest
from service.store.sql.database import Database

NOW = 1_800_000_000.0


def ladder(*, shadow: bool = True, model: str = "m") -> Ladder:
    return Ladder(
        model=model,
        tiers=(
            Tier(
                name="bf16",
                model="m",
                backends=(Backend(url="http://a:1", api_key="sk-secret"),),
                shadow=(Backend(url="http://spare:1", api_key="sk-secret"),) if shadow else (),
                price_per_hour=60.0,
                declares={"weights": "bf16", "hardware": "1x H200"},
            ),
            Tier(name="w8a8", model="m-w8a8", backends=(Backend(url="http://b:1"),), price_per_hour=30.0),
        ),
    )


def terms(**changes: Any) -> JobTerms:
    given: dict[str, Any] = {
        "ladders": {"m": ladder()},
        "slo": {"m": Slo(ttft_seconds=1.0, tpot_seconds=0.05)},
        "money": {"currency": "CNY"},
        "policy_digest": "p1",
        "evaluators": {"refusal": "3"},
        "epoch_of": lambda model, tier: f"epoch of {tier}",
        "corpus_of": lambda model: {"digest": "c1", "requests": 3, "strata": []},
        "has_requests": lambda model: True,
    }
    return JobTerms(**{**given, **changes})


def begun(db: Database, asked: JobTerms, **more: Any) -> Job:
    return begin(db, asked, "m", cause=Cause.REQUEST, actor="ann", now=NOW, **more)


def test_the_manifest_says_all_that_is_needed_to_repeat_the_job_and_no_secret(database: Database) -> None:
    found = begun(database, terms()).manifest
    told = found.document
    assert (told["model"], told["corpus"]["digest"], told["policy"]) == ("m", "c1", "p1")
    assert told["slo"] == {"ttft_seconds": 1.0, "tpot_seconds": 0.05}
    first = found.tier("bf16")
    assert (first["backends"], first["hardware"], first["price_per_hour"]) == (
        ["http://spare:1"],
        "1x H200",
        60.0,
    )
    assert first["epoch"] == "epoch of bf16"
    assert found.plan == JobPlan()
    assert "sk-secret" not in found.text


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"slo": {}}, "no_slo", "no service level"),
        ({"has_requests": lambda model: False}, "empty_corpus", "no request to send"),
        (
            {"ladders": {"m": Ladder(model="m", tiers=ladder().tiers[:1])}},
            "one_tier",
            "nothing to compare it with",
        ),
    ],
)
def test_a_job_that_lacks_something_is_refused_with_what_to_do(
    changes: dict[str, Any], code: str, words: str, database: Database
) -> None:
    with pytest.raises(CannotBegin, match=words) as refused:
        begun(database, terms(**changes))
    assert refused.value.code == code


def test_backends_that_serve_are_named_and_loaded_only_when_they_are_owned(database: Database) -> None:
    asked = terms(ladders={"m": ladder(shadow=False)})
    with pytest.raises(CannotBegin, match="backends that serve clients") as refused:
        begun(database, asked)
    assert refused.value.code == "serving_capacity"
    assert refused.value.reasons == ("bf16: http://a:1 serves clients as m/bf16",)
    assert "--i-own-this-capacity" in refused.value.hint
    assert begun(database, asked, own_capacity=True).own_capacity


def test_one_job_at_a_time(database: Database) -> None:
    first = begun(database, terms())
    with pytest.raises(CannotBegin, match=first.job_id) as refused:
        begun(database, terms())
    assert refused.value.code == "job_runs"


def test_a_replay_has_the_plan_and_seed_of_its_manifest_and_says_what_differs(database: Database) -> None:
    first = begun(database, terms(), plan=JobPlan(rate=2.0, blocks=9))
    end_job(database, first.job_id, JobState.DONE, reason="", now=NOW + 1)
    cheaper = ladder()
    tiers = (cheaper.tiers[0], replace(cheaper.tiers[1], price_per_hour=20.0))
    changed = terms(ladders={"m": Ladder(model="m", tiers=tiers)}, policy_digest="p2")
    second = begun(database, changed, repeats=Manifest.read(first.manifest.text))
    assert second.replay_of == first.manifest.digest
    assert (second.manifest.plan, second.manifest.seed) == (first.manifest.plan, first.manifest.seed)
    assert second.differences == (
        "policy: was p1, is p2",
        "tiers[w8a8].price_per_hour: was 30.0, is 20.0",
    )


def test_two_jobs_draw_seeds_of_their_own(database: Database) -> None:
    first = begun(database, terms())
    end_job(database, first.job_id, JobState.DONE, reason="", now=NOW + 1)
    assert begun(database, terms()).manifest.seed != first.manifest.seed


def test_where_load_goes_must_not_change_under_a_job(database: Database) -> None:
    manifest = begun(database, terms()).manifest
    assert unlike(manifest, ladder()) == ""
    assert "backends of 'bf16' for load" in unlike(manifest, ladder(shadow=False))
    assert "no tier 'w8a8' any more" in unlike(manifest, Ladder(model="m", tiers=ladder().tiers[:1]))


def test_tiers_that_share_a_backend_cannot_be_loaded_together_and_take_turns(database: Database) -> None:
    both = ladder()
    shared = (both.tiers[0], replace(both.tiers[1], shadow=(Backend(url="http://SPARE:1/"),)))
    asked = terms(ladders={"m": Ladder(model="m", tiers=shared)})
    with pytest.raises(CannotBegin, match="cannot be sent together") as refused:
        begun(database, asked, plan=JobPlan(arms="together"))
    assert refused.value.code == "shared_backends"
    assert refused.value.reasons == ("http://spare:1 is loaded for bf16 and w8a8",)
    assert "shadow_job.arms: interleaved" in refused.value.hint
    assert begun(database, asked).manifest.plan.arms == "interleaved"


def test_tiers_with_backends_of_their_own_are_loaded_together_also_by_a_replay(database: Database) -> None:
    first = begun(database, terms(), plan=JobPlan(arms="together"))
    assert first.manifest.document["plan"]["arms"] == "together"
    end_job(database, first.job_id, JobState.DONE, reason="", now=NOW + 1)
    both = ladder()
    shared = (both.tiers[0], replace(both.tiers[1], shadow=(Backend(url="http://spare:1"),)))
    with pytest.raises(CannotBegin, match="cannot be sent together"):
        begun(
            database,
            terms(ladders={"m": Ladder(model="m", tiers=shared)}),
            repeats=Manifest.read(first.manifest.text),
        )
