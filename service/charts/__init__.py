"""Charts as SVG, drawn on the server: no script, no style attribute, colours by class, texts escaped.

`chart` what a page embeds: two layouts, a text alternative, the numbers · `canvas` marks and words · `scale`
from numbers to places, and ticks · `frame` axes, grid and legend · `forest` differences with limits and
margin · `curve` series over a number · `distribution` shares of requests by latency · `narrowing` a
confidence sequence over time · `waterfall` what adds up to a total · `flow` an account that adds up · `heat`
a table in colours. Every caption and label is the caller's, in the caller's language; `style.css` belongs to
every page that embeds one.
"""

from pathlib import Path

STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
"""Colours of light, dark and print; rules for `.chart` and what is in it, and for nothing else."""
