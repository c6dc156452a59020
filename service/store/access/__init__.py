"""Who may ask: `tokens`, `sessions`, `issuer_terms` of issuers; and what was asked twice (`idempotency`)."""
