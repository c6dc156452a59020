"""The client against the real API."""

from __future__ import annotations

from tests.approval.conftest import captures, shared_api, sqlite_api, sqlite_database

__all__ = ["captures", "shared_api", "sqlite_api", "sqlite_database"]
