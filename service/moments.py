"""A moment as text that programs read. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(seconds: float) -> str:
    """RFC 3339 in UTC, to the second; of unix seconds before the year 10,000."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
