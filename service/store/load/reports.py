"""Reports as texts of JSON, by job: the first that is kept of a job stays, whoever comes later."""

from __future__ import annotations

import zstandard
from sqlalchemy import select

from service.store.sql.database import Database
from service.store.sql.job_tables import shadow_jobs
from service.store.sql.report_tables import kept_reports


def keep_report(
    db: Database, job_id: str, *, model: str, ended_at: float, made_at: float, document: str
) -> bool:
    """Keep the report of a job that is over; False when there is one already, which stays."""
    row = {
        "job_id": job_id,
        "model": model,
        "ended_at": ended_at,
        "made_at": made_at,
        "document": zstandard.compress(document.encode()),
    }
    with db.write() as connection:
        kept = connection.execute(
            db.insert(kept_reports)
            .values(row)
            .on_conflict_do_nothing(index_elements=[kept_reports.c.job_id])
            .returning(kept_reports.c.job_id)
        )
        return kept.first() is not None


def read_report(db: Database, job_id: str) -> str | None:
    """The report kept of a job, None when there is none."""
    with db.read() as connection:
        found = connection.execute(
            select(kept_reports.c.document).where(kept_reports.c.job_id == job_id)
        ).scalar_one_or_none()
    if found is None:
        return None
    return zstandard.ZstdDecompressor().decompress(found).decode()


def jobs_to_report(db: Database, *, since: float) -> list[str]:
    """Jobs that ended at or after `since` (unix seconds) and of which no report is kept."""
    of = shadow_jobs.c
    with db.read() as connection:
        return list(
            connection.execute(
                select(of.job_id)
                .outerjoin(kept_reports, kept_reports.c.job_id == of.job_id)
                .where(of.ended_at >= since, kept_reports.c.job_id.is_(None))
                .order_by(of.ended_at)
            ).scalars()
        )
