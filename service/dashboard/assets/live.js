// Keeps a page as it is now: asks for it again and puts what changed in its place. Without it, pages are read
// anew by loading them.
"use strict";
(() => {
  const EVERY = 5000, SLOWEST = 30000, PATIENCE = 20000, LONGEST = 600000;
  const body = document.body, foot = document.querySelector(".foot time");
  const stale = document.getElementById("stale"), words = document.getElementById("live-words");
  const live = () => document.querySelectorAll("[data-live]");
  if (!live().length) return;
  let tag = null, wait = EVERY, failing = false, out = false, timer = 0;

  // Whether somebody is at work in there: a field that holds focus, a form that was begun.
  function busy(part) {
    const at = document.activeElement;
    if (at && at !== body && part.contains(at) && at.matches("input, textarea, select")) return true;
    return [...part.querySelectorAll("input, textarea, select")].some((field) =>
      field.type === "checkbox" || field.type === "radio"
        ? field.checked !== field.defaultChecked
        : field.tagName === "SELECT"
          ? [...field.options].some((option) => option.selected !== option.defaultSelected)
          : field.type !== "hidden" && field.value !== field.defaultValue);
  }

  // A way to find an element again after its surroundings were replaced.
  function place(part, element) {
    const steps = [];
    for (let at = element; at && at !== part; at = at.parentElement) {
      steps.unshift([...at.parentElement.children].indexOf(at));
    }
    return steps;
  }

  function found(part, steps) {
    return steps.reduce((at, step) => at && at.children[step], part);
  }

  function put(part, fresh) {
    const folded = [...part.querySelectorAll("details")];
    const was = folded.map((each) => each.open);
    const rolled = [...part.querySelectorAll(".scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
    const at = document.activeElement, focused = at !== part && part.contains(at) ? place(part, at) : null;
    const kind = at && at.tagName, href = at && at.getAttribute("href");
    part.replaceChildren(...[...fresh.childNodes].map((node) => document.importNode(node, true)));
    const now = [...part.querySelectorAll("details")];
    if (now.length === folded.length) now.forEach((each, number) => { each.open = was[number]; });
    [...part.querySelectorAll(".scroll")].forEach((each, number) => {
      if (rolled[number]) [each.scrollLeft, each.scrollTop] = rolled[number];
    });
    if (!focused) return;
    const links = [...part.querySelectorAll("a")], there = found(part, focused);
    const again = href ? links.find((each) => each.getAttribute("href") === href) : there;
    if (again && again.tagName === kind) { again.focus({ preventScroll: true }); return; }
    // What had the focus is gone: not something else in its place has it now, but the part as a whole.
    part.tabIndex = -1;
    part.focus({ preventScroll: true });
  }

  // What a page says, apart from what only the browser changed in it; without times, whose ages always change.
  function told(part, without = "") {
    const copy = part.cloneNode(true);
    if (without) copy.querySelectorAll(without).forEach((each) => each.replaceChildren());
    copy.querySelectorAll("details[open]").forEach((each) => each.removeAttribute("open"));
    return copy.innerHTML;
  }

  const same = (part, page) => page.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);

  // Whether a page has the parts that this one has, and no others.
  function alike(page) {
    return page.querySelectorAll("[data-live]").length === live().length && [...live()].every((part) => same(part, page));
  }

  function replace(page) {
    const changed = [];
    let put_off = false;
    for (const part of live()) {
      const fresh = same(part, page);
      if (told(fresh) === told(part)) continue;
      if (busy(part)) { put_off = true; continue; }
      const news = told(fresh, "time") !== told(part, "time");
      put(part, fresh);
      if (news && fresh.dataset.label) changed.push(fresh.dataset.label);
    }
    if (changed.length) {
      words.textContent = body.dataset.updated.replace("{what}", changed.join(", "));
      document.dispatchEvent(new CustomEvent("tiergate:updated"));
    }
    return !put_off;
  }

  // As of when the page is right, by the clock of whoever answered: that of a browser may be wrong.
  function asOf(answer) {
    const at = new Date(answer.headers.get("Date"));
    if (isNaN(at)) return;
    foot.dateTime = `${at.toISOString().slice(0, 19)}Z`;
    foot.textContent = `${foot.dateTime.slice(0, 10)} ${foot.dateTime.slice(11, 19)} UTC`;
  }

  function recovered() {
    wait = EVERY;
    if (!failing) return;
    failing = false;
    stale.hidden = true;
    stale.textContent = "";
    words.textContent = body.dataset.again;
  }

  // `asked` is in how many milliseconds somebody wants to be asked again.
  function failed(asked = 0) {
    wait = Math.max(Math.min(SLOWEST, wait * 2), Math.min(LONGEST, asked));
    if (failing) return;
    failing = true;
    stale.textContent = body.dataset.stale.replace("{at}", foot.dateTime.slice(0, 19).replace("T", " "));
    stale.hidden = false;
  }

  function loggedOut() {
    wait = SLOWEST;
    tag = null;
    if (out) return;
    out = failing = true;
    const link = document.createElement("a");
    link.href = body.dataset.loginUrl;
    link.textContent = body.dataset.login;
    stale.replaceChildren(link);
    stale.hidden = false;
  }

  async function ask() {
    const headers = { "X-Tiergate-Live": "1", Accept: "*/*" };
    if (tag) headers["If-None-Match"] = tag;
    const url = new URL(location.href);
    url.searchParams.delete("note");
    url.searchParams.delete("lang");
    const answer = await fetch(url, {
      headers, cache: "no-store", credentials: "same-origin", redirect: "error", signal: AbortSignal.timeout(PATIENCE),
    });
    if (answer.status === 401) { loggedOut(); return; }
    if (answer.status !== 304) {
      if (!answer.ok) { failed(1000 * Number(answer.headers.get("Retry-After")) || 0); return; }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      // Whoever stands in front may answer in our place, with a page of their own.
      if (page.body.dataset.stale === undefined) throw new Error("not of ours");
      // Somebody else may be logged in by now; and another version, or configuration, has other parts.
      if (out || !alike(page)) {
        if (busy(body)) failed(); else location.reload();
        return;
      }
      tag = replace(page) ? answer.headers.get("ETag") : null;
    }
    asOf(answer);
    recovered();
  }

  async function turn() {
    timer = 0;
    try {
      await ask();
    } catch {
      failed();
    }
    later();
  }

  function later() {
    if (!timer) timer = setTimeout(turn, document.hidden ? Math.max(SLOWEST, wait) : wait);
  }

  // Whoever comes back to a page sees at once what it says now, and does not wait for its turn.
  function back() {
    if (document.hidden || !timer) return;
    clearTimeout(timer);
    timer = 0;
    turn();
  }

  document.addEventListener("visibilitychange", back);
  document.addEventListener("resume", back);
  addEventListener("online", back);
  addEventListener("pageshow", (event) => { if (event.persisted) back(); });
  later();
})();
