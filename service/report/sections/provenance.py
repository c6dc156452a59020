"""How to read the page, and everything that is needed to repeat the run."""

from __future__ import annotations

import json

from service.report import writing
from service.report.blocks import Block, Bullets, Folded, Formula, Paragraph, Section
from service.report.document import Report
from service.report.shared import reasons_of
from service.report.words import Words

NOTES = ("intervals", "sequence", "single_look", "quantiles", "rise", "blocks", "absence")


def provenance(report: Report, say: Words) -> Section:
    """What the numbers mean, and the manifest word for word."""
    blocks: list[Block] = [Bullets(items=tuple(say(f"notes.{name}") for name in NOTES))]
    if report.run.replay_of is not None:
        blocks.append(Paragraph(text=say("provenance.replay", digest=writing.digest(report.run.replay_of))))
        if report.run.differences:
            blocks.append(reasons_of(say, report.run.differences))
    if report.manifest:
        text = json.dumps(report.manifest, indent=2, ensure_ascii=False, sort_keys=True)
        blocks.append(Folded(title=say("provenance.manifest"), blocks=(Formula(text=text),)))
        blocks.append(Paragraph(text=say("provenance.repeat")))
    else:
        blocks.append(Paragraph(text=say("provenance.no_manifest"), tone="wait"))
    return Section(anchor="provenance", title=say("provenance.title"), blocks=tuple(blocks))
