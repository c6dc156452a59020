"""After an orderly stop the mirror ledger adds up exactly; after a kill -9 it says how much it may miss."""

from __future__ import annotations

import time

from service.proxy.gauges.numbers import LEAST_AHEAD, SECONDS_AHEAD
from service.store.traffic.account import STALE_SECONDS
from tests.benchmarks.figures import Figure
from tests.benchmarks.system import System, until

SWEPT = 240.0
"""Seconds in which the sweeper finds captures whose message was lost: due after 120, looked at each 30."""


def reconciled(system: System, *, seconds: float = SWEPT) -> list[Figure]:
    """Stop the proxy in order, let the workers finish, compare what clients sent with the ledger."""
    system.check_parts()
    code = system.proxy.stop()
    settled = system.settle(seconds)
    account = system.ledger()
    told = account.skipped, account.dropped
    skipped, dropped = (sum(each.values()) for each in told)
    ended = account.processed + account.expired + account.lost
    return [
        Figure.holds("the proxy stops in order", f"exit status {code}", code == 0),
        Figure.holds("every capture is settled", f"{account.waiting} wait", settled and not account.waiting),
        Figure.holds("requests sent = seen", f"{system.sent} = {account.seen}", system.sent == account.seen),
        Figure.holds(
            "seen = skipped + sampled",
            f"{account.seen} = {skipped} + {account.sampled}",
            account.seen == skipped + account.sampled,
        ),
        Figure.holds(
            "sampled = shipped + dropped",
            f"{account.sampled} = {account.shipped} + {dropped}",
            account.sampled == account.shipped + dropped,
        ),
        Figure.holds(
            "shipped = processed + expired + lost",
            f"{account.shipped} = {account.processed} + {account.expired} + {account.lost}",
            account.shipped == ended,
        ),
        Figure.holds(
            "the ledger balances",
            "; ".join(account.problems) or f"unaccounted {account.unaccounted}",
            account.balanced and not account.problems and not account.unaccounted,
        ),
        Figure.holds(
            "no client met an error",
            ", ".join(f"{times} x {what}" for what, times in system.failures.items()) or "none",
            not system.failures,
        ),
    ]


def killed(system: System, *, rate: float, seconds: float = 5.0) -> list[Figure]:
    """Start the proxy again, kill -9 what serves in the middle of load, and read the ledger as it is then.

    Clients whose requests were under way see an error; the parent starts another process.
    """
    before = system.ledger()
    system.proxy.start()
    if not until(system.ready, 60):
        raise TimeoutError("the proxy did not start again")
    sent, failed = system.sent, dict(system.failures)
    system.load(rate=rate, seconds=seconds, seed=99, halfway=system.kill_serving)
    clients_saw = sum(system.failures.values()) - sum(failed.values())
    system.failures = failed
    code = system.proxy.stop()
    system.settle(SWEPT)
    account = system.ledger(now=time.time() + STALE_SECONDS + 1)
    missing = (system.sent - sent) - (account.seen - before.seen)
    most = LEAST_AHEAD + rate * SECONDS_AHEAD
    return [
        Figure.holds(
            "after kill -9 the proxy serves again and stops in order", f"exit status {code}", code == 0
        ),
        Figure(
            what="after kill -9: requests that the ledger misses",
            found=f"{missing} (clients saw {clients_saw} errors)",
            figure=f"0 to unaccounted, which says {account.unaccounted}",
            met=0 <= missing <= account.unaccounted,
        ),
        Figure(
            what="after kill -9: unaccounted",
            found=str(account.unaccounted),
            figure=f"<= {most:g}, what a proxy sets aside",
            met=account.unaccounted <= most,
        ),
    ]
