"""What outlives a process: captures and routes in Redis, evidence and decisions in SQL.

Two colours. The proxy's side is asynchronous, small and never blocks: `capture` (a stored exchange, sealed),
`shipping` (captures to Redis, the ledger, routes back), `task_message` (Celery's, without Celery),
`counters` and `redis_keys` (names). It loads neither SQLAlchemy nor Celery. The other side is
synchronous, for workers, API and command line. In Redis: `captures`, `spending` (shadow tokens),
`worker_counts`. In SQL (`database`, `schema`): `leases` (who replays what), `units` and `pairs` and
`conversations` (scored pairs, counted once), `evidence` and `standing` (tallies for a verdict), `recount`
(proof of the tallies), `ledger` and `account` (the account of every request), `decisions`, `approvals`
and `routes` (the hash-chained log and what it decided), `tokens`, `retention`.

Enters: captures, units of scored pairs, decisions of people. Leaves: tallies, the account, the route.
Imported by the edges and the roots; imports only `service.decision` and `service.fleet`. Times are unix
seconds and are arguments.
"""
