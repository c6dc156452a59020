"""What others are owed, at least once: `callbacks` (by `gate_terms`), `webhooks` (by `webhook_terms`)."""
