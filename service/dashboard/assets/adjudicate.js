// Labels by single keys: each presses the button that names it. Without it the buttons do the same.
"use strict";
(() => {
  const KEPT = "tiergate-keys";
  const box = document.getElementById("keys-on");
  if (box) {
    box.closest("[hidden]").hidden = false;
    box.checked = localStorage.getItem(KEPT) !== "off";
    box.addEventListener("change", () => localStorage.setItem(KEPT, box.checked ? "on" : "off"));
  }
  let sent = false;

  // A form goes once: a key held down, or pressed twice, must not label the next pair as well.
  document.addEventListener("submit", (event) => {
    if (sent) event.preventDefault();
    sent = true;
  });
  addEventListener("pageshow", () => { sent = false; });

  document.addEventListener("keydown", (event) => {
    if (sent || event.repeat || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (box ? !box.checked : localStorage.getItem(KEPT) === "off") return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    const button = document.querySelector(`button[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (!button) return;
    event.preventDefault();
    button.click();
  });
})();
