"""Evidence has to cover the traffic since its epoch began, not all that ever came."""

from __future__ import annotations

import pytest

from service.decision.policy import Criterion, Policy
from service.fleet import Backend, Ladder, Tier
from service.store.redis.counters import Count, ledger_key
from service.store.scored.pairs import increment, record
from service.store.sql.schema import ledger_counters, ledger_instances
from service.store.sql.tally_tables import takings
from service.store.verdicts import traffic_since
from service.store.verdicts.coverage import read_coverage
from service.store.verdicts.ladder_facts import MOST_TENANTS, read_facts
from service.store.verdicts.standing import Question, read_standing
from service.store.verdicts.traffic_since import OTHERS

LADDER = Ladder(
    model="m",
    tiers=tuple(
        Tier(name=name, model="m", backends=(Backend(url="http://127.0.0.1:9"),)) for name in ("bf16", "w8a8")
    ),
)
POLICY = Policy(criteria=(Criterion(evaluator="structured_output"),))


@pytest.fixture
def came(database):
    """So many more requests of each stratum, at one proxy; and captures taken up, of what workers tell."""
    with database.write() as connection:
        connection.execute(ledger_instances.insert().values(instance="i", closed=False, written_at=1.0))

    def add(model="m", **amounts):
        counters, taken = [], []
        for stratum, amount in amounts.items():
            name = stratum.replace("__", "=")
            if "=" in name:
                taken.append({"model": model, "stratum": name, "amount": amount})
            else:
                counter = ledger_key(Count.TRAFFIC, model, name)
                counters.append({"instance": "i", "counter": counter, "amount": amount})
        with database.write() as connection:
            increment(database, connection, ledger_counters, counters)
            increment(database, connection, takings, taken)

    return add


@pytest.fixture
def counts(database, unit_of):
    """Pairs that count, of a tenant that never came otherwise; the guard looks at them."""

    def add(number, *, epoch="e1", stratum="short", start=0):
        for each in range(start, start + number):
            name = f"{epoch}-{stratum}-{each}"
            unit = unit_of(name, "pp", epoch=epoch, stratum=stratum, tenant="own")
            record(database, capture_id=name, owner="w", units=[unit], at=100.0 + each)
        read_standing(database, LADDER, Question(policy=POLICY, epoch_of=lambda *_: epoch), now=1e6)

    return add


def gate(database, epoch="e1"):
    question = Question(policy=POLICY, epoch_of=lambda *_: epoch)
    verdict = read_standing(database, LADDER, question, now=1e6).rung("w8a8").verdict
    return [reason for reason in verdict.reasons if reason.startswith("coverage: ")]


def test_what_is_gone_since_is_not_asked_for(database, came, counts):
    came(short=700, long=300)
    counts(4)
    assert [reason.partition(":")[2][:14] for reason in gate(database)] == [" stratum long:"]
    came(short=1000)
    assert read_coverage(database, "m", "w8a8", "e1").traffic["long"] == 0
    assert read_coverage(database, "m", "w8a8", "e1").traffic["short"] == 1000
    assert gate(database) == []


def test_what_is_new_since_is_asked_for_though_it_is_little_of_all_that_ever_came(database, came, counts):
    came(short=100_000)
    counts(4)
    came(short=900, long=100)
    assert ["long" in reason for reason in gate(database)] == [True]
    counts(1, stratum="long")
    assert gate(database) == []


def test_every_epoch_has_its_own_beginning(database, came, counts):
    came(long=500)
    counts(4)
    came(short=500)
    counts(4, epoch="e2")
    came(short=100)
    assert read_coverage(database, "m", "w8a8", "e1").traffic["short"] == 600
    assert read_coverage(database, "m", "w8a8", "e2").traffic["short"] == 100
    counts(1, start=4)
    assert read_coverage(database, "m", "w8a8", "e1").traffic["short"] == 600, "noted once"


def test_while_less_came_than_half_of_what_counts_all_traffic_is_compared(database, came, counts):
    came(short=700, long=300)
    counts(10)
    came(short=4)
    traffic = read_coverage(database, "m", "w8a8", "e1").traffic
    assert (traffic["short"], traffic["long"]) == (704, 300)
    came(short=1)
    traffic = read_coverage(database, "m", "w8a8", "e1").traffic
    assert (traffic["short"], traffic["long"]) == (5, 0)


def test_dimensions_are_compared_by_themselves(database, came, counts):
    came(short=1000, language__zh=50, language__en=50)
    counts(4)
    came(short=1000, language__zh=1)
    counts(4, start=4)
    traffic = read_coverage(database, "m", "w8a8", "e1").traffic
    assert traffic["short"] == 1000
    assert (traffic["language=zh"], traffic["language=en"]) == (1, 0)


def test_a_tenant_that_left_is_not_asked_for_nor_those_that_are_not_told_apart(database, came, counts):
    came(**{f"tenant__t{number:02}": 1000 - number for number in range(MOST_TENANTS + 3)})
    counts(2)
    came(tenant__t00=30, tenant__t52=1, tenant__new=5)
    traffic = read_coverage(database, "m", "w8a8", "e1").traffic
    told = {name: number for name, number in traffic.items() if name.startswith("tenant=") and number}
    assert told == {"tenant=t00": 30, OTHERS: 6}


def test_another_models_traffic_is_another_matter(database, came, counts):
    came(short=10)
    came(model="mm", short=5)
    counts(4)
    with database.one_moment() as connection:
        noted = read_facts(connection, "m", ["e1"]).traffic_before
        assert read_facts(connection, "mm", ["e1"]).traffic_before == {}
    assert {key: amounts["short"] for key, amounts in noted.items()} == {("w8a8", "e1"): 10}


def test_tenants_are_noted_by_name_as_far_as_one_of_them_could_matter(database, came, counts, monkeypatch):
    monkeypatch.setattr(traffic_since, "NOTED_TENANTS", 2)
    came(tenant__a=500, tenant__b=300, tenant__c=20, tenant__d=10)
    counts(1)
    with database.one_moment() as connection:
        noted = read_facts(connection, "m", ["e1"]).traffic_before["w8a8", "e1"]
    assert noted == {"tenant=a": 500, "tenant=b": 300, OTHERS: 31}, "the pair's own tenant is one of them"
