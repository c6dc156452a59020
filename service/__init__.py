"""Tiergate's rooms. `docs/architecture.md` has the plan; the import contracts in `pyproject.toml` enforce it."""
