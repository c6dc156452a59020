"""Whether a text keeps to the choice or the regular expression that its request gave the engine.

White space around the text counts for nothing, as around JSON. A grammar or structural tag is not judged:
each engine has a notation and a parser of its own, and judging by another would blame the answer for the
difference.
"""

from __future__ import annotations

from evaluators.exchange import Guide, GuideKind
from evaluators.patterns import Inexpressible, whole_matcher

MOST_TEXT = 1024 * 1024
"""Characters of an answer that are matched."""


class UnsupportedGuide(ValueError):
    """The constraint cannot be judged; the request's doing, never the answer's."""


def check_guide(guide: Guide) -> None:
    """Raises `UnsupportedGuide` with the reason, whatever is answered."""
    if guide.kind is GuideKind.CHOICE:
        if not guide.choices:
            raise UnsupportedGuide("the choice offers nothing that can be read")
    elif guide.kind is GuideKind.REGEX:
        try:
            whole_matcher(guide.written)
        except Inexpressible as error:
            raise UnsupportedGuide(str(error)) from None
    else:
        raise UnsupportedGuide(f"what a {guide.kind.replace('_', ' ')} allows is not judged")


def departure(guide: Guide, text: str) -> str | None:
    """How the text departs from its guide, None when it keeps to it. Raises `UnsupportedGuide`."""
    check_guide(guide)
    if guide.kind is GuideKind.CHOICE:
        if text in guide.choices or text.strip() in (choice.strip() for choice in guide.choices):
            return None
        return f"expected one of {len(guide.choices)} choices, found another text"
    matches = whole_matcher(guide.written)
    if matches(text) or matches(text.strip()):
        return None
    return f"expected a match of {guide.written[:80]!r}, found another text"
