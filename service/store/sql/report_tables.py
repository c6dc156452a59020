"""Reports of shadow jobs that are over, as they were made: the verdicts of then, which nothing else keeps."""

from __future__ import annotations

from sqlalchemy import Column, Double, Index, LargeBinary, String, Table

from service.store.sql.schema import metadata

kept_reports = Table(
    "kept_reports",
    metadata,
    Column("job_id", String, primary_key=True),
    Column("model", String, nullable=False),
    Column("ended_at", Double, nullable=False),
    Column("made_at", Double, nullable=False),
    Column("document", LargeBinary, nullable=False),  # zstd of the JSON of `service.report.document`
    Index("kept_reports_by_model", "model", "ended_at"),
)
