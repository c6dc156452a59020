"""The page behind the API's door, as `tiergate api` serves it."""

from __future__ import annotations

from tests.approval.conftest import captures, sqlite_database

__all__ = ["captures", "sqlite_database"]
