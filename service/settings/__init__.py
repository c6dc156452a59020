"""One YAML file and the environment, read once by a root and handed down as frozen values.

Nouns: `Settings` (`values`) and what it holds; `Problem` and `SettingsError` (`problems`).
Enters: a path and an environment mapping. Leaves: `Settings`, or every problem at once with its place, its
line and the nearest valid key.

The way: `document` (YAML text -> plain values with lines) -> `shape` (pydantic: every key, form and default;
the source of the JSON Schema) -> `complaints` (what pydantic found, in the words of the file) -> `build`
(values, with `secrets` from files) -> `values`. `load` walks it. `units` reads `5%`, `6h`, `8MiB`;
`variables` names those of the environment, `due` tells when a schedule is due next, `evaluating` loads the
evaluators of other packages.

Imported only by roots: `service.cli`, `service.demo`, `service.launch`, `workers.app`.
"""

from service.fleet import Slo
from service.settings.load import load
from service.settings.problems import Problem, SettingsError
from service.settings.values import ApiListen, Money, ProbePlan, Settings, ShadowPlan

__all__ = [
    "ApiListen",
    "Money",
    "ProbePlan",
    "Problem",
    "Settings",
    "SettingsError",
    "ShadowPlan",
    "Slo",
    "load",
]
