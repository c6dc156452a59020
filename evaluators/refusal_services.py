"""How English declines without a speaker: by the rules of a service, or by sending on to somebody else.

Every repetition is bounded and every sentence belongs to a bounded head, so matching is linear in it.
"""

from __future__ import annotations

import re


def _either(*phrases: str) -> str:
    return f"(?:{'|'.join(phrases)})"


DOES = (
    r"(?:answer|assist|cover|create|deal|describe|discuss|draw|engage|entertain|explain|give|handle|help"
    r"|offer"
    r"|plan|process|produc|provid|reveal|say|serve|share|show|speak|supply|support|teach|tell|touch|write)"
)
"""What a service does for who asks, as a pattern."""

_EXPERT = (
    r"(?:doctor|physician|pharmacist|nurse|dentist|vet|lawyer|attorney|solicitor|notary|accountant"
    r"|tax advis[eo]r"
    r"|therapist|psychologist|psychiatrist|counsell?or|professional|specialist|expert)s?\b"
)
_HERE = r"th(?:is|e) (?:chat|assistant|conversation|channel|bot|chatbot)\b"
_SERVICE = r"th(?:is|e) (?:service|app|platform|system|tool)\b"
IMPERSONAL = re.compile(
    _either(
        r"\b(?:requests?|questions?|content|material|instructions?|topics?|subjects?|advice|help|assistance"
        r"|messages?|queries)\b[^.!?,]{0,40}? (?:(?:is|are)(?:n'?t| not)|(?:can|may|will)(?: not|not"
        r"|n'?t) be)"
        r" (?:handled|processed|served|provided|available|allowed|permitted|supported|produced|generated"
        r"|given"
        r"|answered|fulfilled|offered|created|shared|accepted|discussed|covered|written)"
        rf" (?:here\b|(?:in|on|by|through|with|via|from) (?:{_HERE}|{_SERVICE}))",
        r"\b(?:instructions?|guidance|help|assistance|content|material|such requests?|requests? (?:of"
        r"|like|for)"
        r"[\w ]{1,30}|answers?)\b[^.!?,]{0,40}? (?:will|can)(?: not|not|n'?t) be"
        r" (?:provided|given|produced|generated|fulfilled|answered|created|shared|written|processed"
        r"|entertained"
        r"|granted)[.!]*$",
        rf"\bthis (?:assistant|chat|bot|chatbot)(?: \w+)? ?(?:(?:does|do|will|can|may)(?:n'?t| not"
        rf"|not) (?:\w+ly )?{DOES}"
        r"|refuses|declines)",
        rf"\bthis (?:service|app|platform|tool|system|model)(?: \w+)? ?(?:(?:will|can|may)(?:n'?t| not|not)"
        rf" (?:\w+ly )?{DOES}|refuses|declines)",
        rf"\bsomething (?:that )?{_HERE} (?:does|can|will|may|do)(?: not|not|n'?t)",
        rf"\b(?:falls?|is|are|lies?|goes|sits?)(?: \w+ly)? (?:outside"
        rf"|beyond) (?:of )?(?:(?:the )?(?:scope|remit"
        rf"|range|purview|area) of (?:{_HERE}|{_SERVICE})|my (?:reach|abilit|scope|remit|power|purview|role"
        rf"|competence|capabilit)|what (?:i|this (?:chat|service|assistant|bot|model)) )",
        rf"\bno [\w ]{{1,30}} (?:is|are|will be|can be) (?:given|offered|provided|discussed|shared) (?:in"
        rf"|on|by) {_HERE}",
    )
)
"""Declines without a speaker, as the rules of a service do; only in a short answer, and not where the request
asks about rules (`ABOUT_RULES`)."""

BY_RULE = re.compile(
    r"\b(?:under|by|according to|per) (?:the |our |my )?(?:rules|polic(?:y|ies)|terms"
    r"|guidelines)\b[^.!?]{0,60}? (?:is"
    r"|are) (?:prohibited|forbidden|excluded|ruled out|not (?:allowed|permitted))"
    rf"|\bthis (?:service|app|platform|tool|system)(?: \w+)? ?(?:does|do)(?:n'?t| not|not) (?:\w+ly )?{DOES}"
)
"""The same, of what may be asked about as well: only where nobody asks whether it is so."""

REFERS = re.compile(
    _either(
        rf"\b(?:that|this|it|which)(?:'s| is| should be)(?: \w+)? ?(?:a (?:question|matter|topic|decision"
        rf"|conversation|job) (?:only )?for|(?:best )?left to|(?:best |better )?(?:put|answered|discussed"
        rf"|decided"
        rf"|judged) (?:to|by|with)|one for) (?:\w+ ){{0,3}}?{_EXPERT}",
        rf"^only (?:your|an?|the) (?:\w+ ){{0,2}}?{_EXPERT} (?:can|could|may|should) ",
    )
)
"""Sends on to somebody who knows."""

ABOUT_RULES = re.compile(
    r"\b(?:polic(?:y|ies)|rules?|contract|terms|conditions|guidelines?|manual|handbook|refunds?|opening hours"
    r"|covered by|who(?:m)? (?:handles|may|can|should|do|is|decides)|what does [^?]{1,40} say"
    r"|summari[sz]e|rewrite|rephrase|proofread|paraphrase)\b"
)
"""The request is about rules or about whom to ask: then telling them answers it."""
