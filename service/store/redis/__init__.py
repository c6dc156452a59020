"""Captures, counters and routes in Redis, and what the proxy's side is made of. No SQL, no Celery.

Asynchronous, small and never in the way: `capture` (a stored exchange, sealed), `shipping` (captures to
Redis, the ledger, routes back; `intake` is its script), `task_message` (Celery's, without Celery).
Synchronous, for workers and API: `captures`, `spending` (shadow tokens), `worker_counts`. Names:
`redis_keys`, `counters`, `addresses` (one server in two spellings).
"""
