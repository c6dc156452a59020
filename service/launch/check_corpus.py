"""What `tiergate check` says of what is kept of traffic: whether its mask can be used, and is one."""

from __future__ import annotations

from service.launch.check import Level, Line
from service.settings import Settings
from service.settings.redacting import MaskUnusable, mask_of


def corpus_lines(settings: Settings) -> list[Line]:
    """Loads the mask, which may be another package's code, as every worker does when it starts."""
    terms, subject = settings.corpus, "corpus.redact"
    try:
        mask_of(terms.redact)
    except MaskUnusable as error:
        return [Line(level=Level.FAIL, subject=subject, text=str(error))]
    if terms.redact == "off" and (terms.plan.per_stratum or terms.answers):
        days = terms.plan.retention_seconds / 86_400
        text = f"nothing is masked: what is kept, encrypted, for {days:g} days holds whatever clients sent"
        return [Line(level=Level.WARN, subject=subject, text=text)]
    return []
