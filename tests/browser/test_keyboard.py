"""By keyboard alone: approving, rolling back, and labelling pairs."""

from __future__ import annotations

import re
from dataclasses import replace

from playwright.sync_api import Page, expect
from starlette.responses import HTMLResponse

from service.approval.app import create_app
from service.dashboard.rooms import front_of
from service.dashboard.visit import address
from service.store.decided.decisions import read
from service.store.decided.routes import current_route
from tests.approval.live import serving
from tests.browser.conftest import OpenPage
from tests.browser.places import Built, tier
from tests.dashboard.house import CHAT

MOST_STOPS = 300


def tab_to(page: Page, wanted: str) -> None:
    """Press Tab until what the selector means has the focus, which can be seen at every stop."""
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """wanted => {
                const at = document.activeElement, style = getComputedStyle(at);
                const marked = style.outlineStyle !== "none" || style.boxShadow !== "none";
                const seen = at === document.body || marked;
                return [at.matches(wanted), seen, at.outerHTML.slice(0, 120)];
            }""",
            wanted,
        )
        assert found[1], f"nobody sees that the focus is on {found[2]}"
        if found[0]:
            return
    raise AssertionError(f"Tab never comes to {wanted}")


def actions(built: Built) -> list[tuple[str, str]]:
    """What the log says, the latest last, as (action, tier)."""
    return [(entry.action, entry.tier) for entry in read(built.api.db, limit=1000)]


def test_somebody_logs_in_by_keyboard_and_comes_to_where_they_wanted(look: OpenPage, built: Built) -> None:
    seen = look(built.api)
    page = seen.page
    page.goto("/")
    expect(page.locator("h1")).to_have_text("Overview")
    tab_to(page, "a[href^='/login']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/login?*")
    tab_to(page, "#token")
    page.keyboard.type(built.api.secrets["read"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/")
    expect(page.locator(".who")).to_contain_text("test-read")
    assert seen.complaints == []


def test_a_link_in_a_message_is_opened_with_the_session_that_is_there(look: OpenPage, own: Built) -> None:
    """Browsers keep the cookie back where another site led here: 127.0.0.1 and localhost are two sites."""
    config = replace(own.api.config, loopback_reads=False)
    app = create_app(config, own.api.db, own.api.captures, front=front_of(), now=own.api.clock)
    with (
        serving(app) as url,
        serving(HTMLResponse(f'<a href="{url}{tier("w8a8")}">w8a8 could serve</a>')) as elsewhere,
    ):
        page = look(own.api, scope="approve").page
        page.goto(elsewhere.replace("127.0.0.1", "localhost"))
        page.locator("a").click()
        expect(page.locator("h1")).to_have_text("You come from another site")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_contain_text("w8a8")
        expect(page.locator(".who")).to_contain_text("test-approve")


def test_a_tier_is_approved_by_keyboard(look: OpenPage, own: Built) -> None:
    seen = look(own.api, scope="approve")
    page = seen.page
    page.goto(tier("w8a8"))
    before = len(actions(own))
    tab_to(page, "a[href*='do=approve']")
    page.keyboard.press("Enter")
    expect(page.locator("form.confirm")).to_be_visible()
    assert len(actions(own)) == before, "asking what would happen did something"
    tab_to(page, "form.confirm #reason")
    page.keyboard.type("looks right to us")
    tab_to(page, "form.confirm button")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("test-approve")
    assert ("approve", "w8a8") in actions(own)[before:]
    assert page.evaluate("document.activeElement.textContent") == "Approved."
    assert seen.complaints == []


def test_a_model_is_rolled_back_by_keyboard(look: OpenPage, own: Built) -> None:
    seen = look(own.api, scope="approve")
    page = seen.page
    page.goto(tier("fp8-kv"))
    tab_to(page, "a[href*='do=roll_back']")
    page.keyboard.press("Enter")
    expect(page.locator("form.confirm")).to_be_visible()
    tab_to(page, "form.confirm button")
    page.keyboard.press("Enter")
    page.wait_for_url("**/tier?*")
    route = current_route(own.api.db, CHAT)
    assert route is not None
    assert route.weights == {"bf16": 100}
    assert seen.complaints == []


def test_who_may_not_is_told_the_scope_and_can_send_nothing(look: OpenPage, own: Built) -> None:
    page = look(own.api, scope="read").page
    page.goto(tier("w8a8"))
    assert page.locator("a[href*='do=approve']").count() == 0
    barred = page.locator(".barred").first
    expect(barred).to_contain_text("approve")
    expect(barred.locator("button")).to_be_disabled()


def test_pairs_are_labelled_by_single_keys_and_the_last_is_taken_back(look: OpenPage, own: Built) -> None:
    seen = look(own.api, scope="label")
    page = seen.page
    page.goto("/adjudicate")
    shown = []
    for key in ("a", "b", "o", "n", "s"):
        named = page.locator(f"button[data-key='{key}']")
        expect(named).to_be_visible()
        item = page.locator("#say input[name=item]").get_attribute("value")
        shown.append(item)
        page.keyboard.press(key)
        expect(page.locator(f"#say input[name=item][value='{item}']")).to_have_count(0)
    assert len(set(shown)) == 5, "a pair was shown again after it was labelled"
    assert page.locator("main").inner_text().count("w4a16") == 0, "who labels sees which tier it is"
    page.keyboard.press("u")
    expect(page.locator(f"#say input[name=item][value='{shown[-1]}']")).to_have_count(1)
    assert seen.complaints == []


def test_what_has_the_focus_is_not_under_the_buttons_that_stay(look: OpenPage, built: Built) -> None:
    page = look(built.api, scope="label").page
    page.goto("/adjudicate")
    for key in ("Tab", "Shift+Tab"):
        for _ in range(40):
            page.keyboard.press(key)
            hidden = page.evaluate(
                """() => {
                    const at = document.activeElement, where = at.getBoundingClientRect();
                    const bar = document.querySelector(".say").getBoundingClientRect();
                    if (at === document.body || at.closest(".say, .top, .skip")) return "";
                    return bar.top <= 0 && where.bottom <= bar.bottom ? at.outerHTML.slice(0, 120) : "";
                }"""
            )
            assert hidden == ""


def test_an_impatient_hand_sends_a_form_once(look: OpenPage, own: Built) -> None:
    seen = look(own.api, scope="approve")
    page = seen.page
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.goto(address("/tier/act", model=CHAT, tier="w8a8", do="approve"))
    page.locator("form.confirm button").dblclick()
    expect(page.locator(".banner.good")).to_have_text("Approved.")
    assert len(sent) == 1
    page.goto("/adjudicate")
    page.evaluate(
        """for (let times = 0; times < 2; times += 1) {
            const how = {key: "a", bubbles: true, cancelable: true};
            document.body.dispatchEvent(new KeyboardEvent("keydown", how));
        }"""
    )
    expect(page.locator(".banner.good")).to_be_visible()
    assert len(sent) == 2
    assert seen.complaints == []


def test_a_wrong_token_brings_the_focus_back_to_its_field_with_what_is_wrong(
    look: OpenPage, built: Built
) -> None:
    page = look(built.api).page
    page.goto("/login")
    page.locator("#token").fill("tg_wrong_secret")
    page.keyboard.press("Enter")
    field = page.locator("#token[aria-invalid=true]")
    expect(field).to_be_focused()
    expect(field).to_have_accessible_description(re.compile("unknown, revoked or expired"))
