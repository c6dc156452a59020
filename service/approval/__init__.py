"""The control plane's API: read verdicts, approve, revoke, roll back.

Enters: HTTP requests of people and pipelines, `ApiConfig` from a root, evidence from `service.store`.
Leaves: JSON (`schemas`), entries of the decision log, routes that proxies follow. On the way in: `gatekeeper`
(Host, Origin, token, body size; `id_tokens`, `issuer_keys` and `key_sets` for tokens that an issuer signed),
then one of the routers (`ladders verdicts approvals logs probes`). `access` and `promotion` decide and do no
I/O. Imported by `service.cli` only; knows no proxy.
"""
