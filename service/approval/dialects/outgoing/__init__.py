"""What webhooks are told, in each receiver's own form; docs/webhooks.md is for who receives it."""
