"""The Celery side: captures in, evidence out.

Enters: ids of captures, from the broker. A worker leases the capture in SQL, opens it, claims its
conversation, puts the request to every candidate and to the baseline again (`backends`, `probes`), judges
the pairs (`judge`) and records everything in one transaction (`replay`). `guard` sweeps, copies the ledger,
republishes routes and watches what serves. `tasks` is what Celery calls; `app` is the root: the only module
here that reads settings. Nothing imports this package: others enqueue by task name.
"""
