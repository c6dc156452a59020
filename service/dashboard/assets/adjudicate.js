// Labels by single keys: each presses the button that names it. Without it the buttons do the same.
// A key that is held down, or pressed twice, must not label the next pair as well: forms go once (once.js).
"use strict";
(() => {
  const KEPT = "tiergate-keys";
  const box = document.getElementById("keys-on");
  if (box) {
    box.closest("[hidden]").hidden = false;
    box.checked = localStorage.getItem(KEPT) !== "off";
    box.addEventListener("change", () => localStorage.setItem(KEPT, box.checked ? "on" : "off"));
  }

  document.addEventListener("keydown", (event) => {
    if (document.documentElement.dataset.sent || event.repeat || event.isComposing) return;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (box ? !box.checked : localStorage.getItem(KEPT) === "off") return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    const button = document.querySelector(`button[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (!button) return;
    event.preventDefault();
    button.click();
  });
})();
