"""A page whose complaints are kept: script errors, what its policy refuses, dialogs, requests elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field

from playwright.sync_api import Dialog, Page, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A page, and what went wrong on it so far."""

    page: Page
    complaints: list[str] = field(default_factory=list)


def watched(page: Page) -> Watched:
    """Keeps whatever the page complains of."""
    seen = Watched(page=page)

    def dialog(asked: Dialog) -> None:
        seen.complaints.append(f"dialog: {asked.message}")
        asked.dismiss()

    def request(sent: Request) -> None:
        if not sent.url.startswith(("http://127.0.0.1:", "data:", "blob:", "about:")):
            seen.complaints.append(f"asks {sent.url}")

    page.on("dialog", dialog)
    page.on("request", request)
    page.on("pageerror", lambda error: seen.complaints.append(f"script: {error}"))
    page.on(
        "console",
        lambda told: seen.complaints.append(f"console: {told.text}") if told.type == "error" else None,
    )
    return seen
