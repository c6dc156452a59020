"""The list of commands as people look for one: by what it is for, each with its whole first sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperGroup

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "To begin": ("demo", "init", "check", "up", "token", "schema"),
    "What the evidence says": ("ladder", "verdict", "evidence", "differences", "epochs", "ledger", "report"),
    "Who serves": ("gate", "approve", "reject", "revoke", "rollback", "skip", "restore-alpha"),
    "What evidence is made of": ("shadow", "corpus", "adjudicate", "prescreen", "capacity", "drill"),
    "What was decided, to be checked": ("decisions", "log", "attest", "artifact", "recount", "webhooks"),
    "Without a server": ("stats", "plan", "money", "policy", "score"),
    "Parts by themselves": ("proxy", "api"),
}
"""Every command of `tiergate`, once."""


class Commands(TyperGroup):
    """A group whose list of commands is wrapped, and never cut."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(self.rows(self.list_commands(ctx)))

    def rows(self, names: Any) -> list[tuple[str, str]]:
        """Name and first paragraph of each."""
        helps = {name: self.commands[name].help or "" for name in names}
        return [(name, " ".join(text.partition("\n\n")[0].split())) for name, text in helps.items()]


class Sections(Commands):
    """`tiergate` itself: its commands by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, names in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(self.rows(names))
