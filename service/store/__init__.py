"""What outlives a process: captures and routes in Redis, evidence and decisions in SQL.

Two colours. The proxy's side is asynchronous, small and never blocks: `capture` (a stored exchange, sealed),
`shipping` (captures to Redis, the ledger, routes back), `task_message` (Celery's, without Celery),
`counters` and `redis_keys` (names), `addresses` (one server in two spellings). It loads neither SQLAlchemy
nor Celery. The other side is synchronous, for workers, API and command line. In Redis: `captures`, `spending`
(shadow tokens), `worker_counts`. In SQL (`database`, `schema`, `tally_tables`): `leases` (who replays what),
`units`, `pairs`, `conversations` and `closing` (scored pairs, counted once), `counting` and `own_strata`
(what they add),
`details` (what comparisons saw), `evidence`,
`breakdown` (strata, tenants, coverage), `epochs`, `ladder_counts` and `standing` (what a verdict is read
from), `recount` (proof of the counts) and `upgrade`, `observations` (what engines tell), `detectors`, `holds`
and `measurements` (what the guard goes by), `ledger` and `account` (the account of every request),
`decisions`, `approvals` and `routes` (the hash-chained log and what it decided), `tokens`, `retention`;
`corpus_plan`, `corpus` and `corpus_members` (requests for shadow jobs), `kept_answers` (to be judged again),
`forgetting` (in time, or when asked), `resends`.

Enters: captures, units of scored pairs, decisions of people. Leaves: tallies, the account, the route.
Imported by the edges and the roots; imports only pure rooms. Times are unix
seconds and are arguments.
"""
