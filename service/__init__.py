"""Tiergate's rooms: `docs/architecture.md` has the plan, the contracts in `pyproject.toml` enforce it."""
