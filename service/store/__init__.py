"""What outlives a process: captures and routes in Redis, evidence and decisions in SQL.

Two colours. The proxy's side is asynchronous, never blocks, and is in `redis` alone: it loads neither
SQLAlchemy nor Celery. The other side is synchronous, for workers, API and command line. From the top: `load`
(shadow jobs) and `outgoing` (what others are owed); `verdicts`, over `traffic` (the account of every request)
and `scored` (pairs, counted once); `labels` (people's), `kept` (of traffic) and `access` (who may ask);
`decided` (the log and what is in force); `redis` and `sql`.

Enters: captures, units of scored pairs, decisions of people. Leaves: tallies, the account, the route.
Imported by the edges and the roots; imports only pure rooms. Times are unix seconds and are arguments.
"""
