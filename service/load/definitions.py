"""How each figure of a load run is defined; printed wherever the figures are."""

from __future__ import annotations

from collections.abc import Mapping

DEFINITIONS: Mapping[str, str] = {
    "ttft": "first token of content, reasoning, tool arguments or refusal - scheduled send",
    "tpot": "(last token - first token) / (n - 1); requests with n < 2 have none and are counted apart",
    "e2e": "last token - scheduled send = TTFT + TPOT x (n - 1), checked",
    "n": "output tokens by the server's usage, cross-checked by events that carry output",
    "slo": "complete, TTFT and TPOT (where there is one) within their limits; a failure is a miss",
    "pass_rate": "requests that met the SLO / requests offered",
    "goodput": "output tokens of requests that met the SLO / seconds of the window",
    "offered": "requests scheduled in the steady window, whatever became of them",
    "lag": "taken up by the generator - scheduled send",
}
