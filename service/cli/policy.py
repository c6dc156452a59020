"""`tiergate policy`: show what is in force, check a file before it is, judge stored evidence under another.

None of these asks a server, and `show` and `check` open nothing but the files they are told.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, RenderableType

from service.cli.configuration import WRONG_CONFIGURATION, ConfigOption, fail, load_or_exit

if TYPE_CHECKING:
    from service.settings.policy_file import PolicyRead

DIFFERENT = 1
"""Exit status of `diff` when a decision differs."""
NO_EVIDENCE = 3
"""Exit status of `diff` when the stored evidence cannot be read."""

policy_app = typer.Typer(
    no_args_is_help=True,
    help="What a tier must show: in force, on trial, and of stored evidence in retrospect.",
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
AttemptOption = Annotated[
    int, typer.Option(min=1, metavar="J", help="Numbers for the J-th submission of a tier.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    policy_app.command("show", epilog="Docs: docs/configuration.md")(show)
    policy_app.command("check", epilog="Docs: docs/configuration.md")(check)
    policy_app.command("diff", epilog="Docs: docs/statistics.md")(diff)
    app.add_typer(policy_app, name="policy")


def show(
    config: ConfigOption = None,
    attempt: AttemptOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Print the policy in force: every value with its source, and what it asks for in plain numbers.

    The numbers are those of a first submission: what an e-value must reach to accept, to reject, or to reject
    for one stratum alone; how many pairs a tier needs of which not one differs; after how many pairs a tier
    that is still undecided counts as not shown (at least; more when its answers differ more).

    \b
    What does ./tiergate.yaml ask for?
      tiergate policy show
    Every margin that is not the default:
      tiergate policy show --json | jq -r '.values[] | select(.key|endswith("margin")) | select(.line)'
    """
    from service.cli.policy_views import read_view

    read = _read(_chosen(config))
    _tell(read_document(read, attempt), lambda: read_view(read, attempt), as_json=as_json)


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A whole tiergate.yaml, or a policy alone.")],
    config: ConfigOption = None,
    attempt: AttemptOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Try a policy before it is in force, and touch nothing: no database, no key, no server.

    FILE holds a whole configuration, a `policy:` alone, or what stands below it. Exit status 0 if it can be
    used; 2 with every problem, its line and the nearest valid key if not. Where a configuration is in force
    (-c, TIERGATE_CONFIG or ./tiergate.yaml), it tells what would change, and whether evidence starts anew.

    \b
      tiergate policy check stricter.yaml
      tiergate policy check stricter.yaml -c /etc/tiergate.yaml
    """
    from service.cli.policy_views import check_view, read_view

    read = _read(file)
    chosen = _chosen(config)
    in_force = _read(chosen) if config is not None or chosen.exists() else None
    document = {**read_document(read, attempt), "changes": None, "new_epochs": None}
    if in_force is not None:
        document["changes"] = in_force.changes_to(read)
        document["new_epochs"] = not in_force.counts_alike(read)
    _tell(
        document,
        lambda: check_view(document, in_force, read_view(read, attempt, in_force)),
        as_json=as_json,
    )


def diff(
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="A policy, alone or in a tiergate.yaml.")],
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="All when left out.")] = None,
    tier: Annotated[str | None, typer.Argument(metavar="TIER", help="All when left out.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge the stored evidence of the present epochs again, under another policy, side by side.

    RETROSPECTIVE: it shows what a policy would have said and approves nothing. A policy that is chosen after
    its evidence was seen is fitted to it, so its error rates do not hold for that evidence: put it into
    tiergate.yaml, and what it changes is tested on new pairs.

    Reads the database of the configuration directly, whether the API runs or not. Exit status 0 if every
    decision is the same, 1 if one differs, 2 if a file or a name is wrong, 3 if there is no evidence to read.

    \b
    Would half the margin have changed anything?
      tiergate policy diff stricter.yaml
      tiergate policy diff stricter.yaml qwen3-32b w4a16 --json | jq '.tiers[].decision_differs'
    """
    from service.cli.policy_views import diff_view
    from service.cli.retrospect import NoEvidence, Unknown, retrospect

    read, settings = _read(other), load_or_exit(config, make_key=False)
    try:
        document = retrospect(settings, read, model, tier)
    except Unknown as error:
        raise typer.BadParameter(str(error)) from None
    except NoEvidence as error:
        raise fail(str(error), NO_EVIDENCE) from None
    _tell(document, lambda: diff_view(document), as_json=as_json)
    if any(each["decision_differs"] for each in document["tiers"]):
        raise typer.Exit(DIFFERENT)


def read_document(read: PolicyRead, attempt: int) -> dict[str, Any]:
    """The JSON of `show`."""
    from service.cli.policy_views import demand_documents, load_run_documents

    return {
        "file": str(read.path),
        "attempt": attempt,
        "values": [
            {"key": told.key, "value": told.value, "from": told.origin, "line": told.line}
            for told in read.told
        ],
        "asks": demand_documents(read, attempt),
        "load_runs": load_run_documents(read, attempt),
    }


def _chosen(config: Path | None) -> Path:
    return config or Path("tiergate.yaml")


def _read(path: Path) -> PolicyRead:
    from service.settings.policy_file import read_policy
    from service.settings.problems import SettingsError

    try:
        return read_policy(path)
    except SettingsError as error:
        raise fail(str(error), WRONG_CONFIGURATION) from None


def _tell(document: dict[str, Any], view: Any, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        shown: RenderableType = view()
        Console().print(shown)
