"""The overview page: every model's ladder, verdicts, gates and ledger, made on the server.

Enters: a function that reads the standings and the ledger when somebody looks (`overview.Look`). Leaves:
routes that `service.cli.api` puts beside the API's, behind the same door. No script, nothing from elsewhere.
Shares its read models with the API through `service.store.standing`; knows no FastAPI.
"""
