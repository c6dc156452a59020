"""A report as a page in one language, still free of HTML and Markdown."""

from __future__ import annotations

from service.report import writing
from service.report.blocks import Badge, Page
from service.report.conclusion import conclude
from service.report.document import Report
from service.report.sections.account import account
from service.report.sections.capacity import capacity
from service.report.sections.changed import changed
from service.report.sections.costs import costs
from service.report.sections.engines import engines
from service.report.sections.glance import glance
from service.report.sections.latency import latency
from service.report.sections.provenance import provenance
from service.report.sections.quality import quality
from service.report.sections.rates import rates
from service.report.shared import TONES, decided
from service.report.words import Language, words

ALL = (glance, changed, quality, latency, rates, costs, capacity, engines, account, provenance)


def page(report: Report, language: Language = Language.EN) -> Page:
    """Every part that has something to say, in order."""
    say = words(language)
    run = report.run
    ended = run.ended_at
    facts = [
        (say("page.run"), run.id),
        (say("page.state"), say.known(f"state.{run.state}", run.state)),
        (say("page.began"), writing.moment(run.began_at)),
        (say("page.took"), writing.NONE if ended is None else writing.duration(ended - run.began_at)),
        (say("page.begun_by"), run.begun_by or writing.NONE),
        (
            say("page.blocks"),
            say("page.blocks_of", done=writing.count(run.blocks_done), all=writing.count(run.blocks)),
        ),
        (say("page.tokens"), writing.NONE if run.tokens is None else f"{writing.count(run.tokens)} tok"),
        (say("page.made"), writing.moment(report.made_at)),
    ]
    sections = [part(report, say) for part in ALL]
    return Page(
        language=language.tag,
        title=say("page.title", model=run.model),
        facts=tuple(facts),
        badges=tuple(
            Badge(tier=each.name, text=decided(say, verdict.decision), tone=TONES[verdict.decision])
            for each in report.candidates
            for verdict in [each.verdict]
            if verdict is not None
        ),
        conclusion_title=say("page.conclusion"),
        conclusion=conclude(report, say),
        contents_title=say("page.contents"),
        sections=tuple(each for each in sections if each is not None),
        footer=say("page.footer"),
    )
