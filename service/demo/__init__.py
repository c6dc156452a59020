"""The demo: a real model at several precisions behind a real proxy, and the verdicts that come of it.

`run` is the whole: `models` has a model (`published`) requantised (`quantise`), `llama_server` serves one
tier (`tiers`), `configuration` writes a `tiergate.yaml`, `service.launch` runs everything, `driver` sends the
`workload` (`extraction`, `notes`, `questions`; a `prompt` each) through the proxy, `walk` watches ledger and
verdicts through the API and ends in time, `screen` and `report` show what came out. `plan` says how large a
run is. Nothing here knows which tier will fail. Imported by `service.cli` alone.
"""
