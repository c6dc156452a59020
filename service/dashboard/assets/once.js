// A form that changes something goes once: the second press of an impatient hand would be answered in place of the
// first, and say that nothing was done. Without it the server still does it once.
"use strict";
(() => {
  const AGAIN = 10000;  // milliseconds after which an answer is not coming, or was given up
  const page = document.documentElement;
  let timer = 0;

  function open() {
    clearTimeout(timer);
    delete page.dataset.sent;
  }

  document.addEventListener("submit", (event) => {
    if (event.target.getAttribute("method") !== "post") return;
    if (page.dataset.sent) {
      event.preventDefault();
      return;
    }
    page.dataset.sent = "yes";
    timer = setTimeout(open, AGAIN);
  });
  addEventListener("pageshow", open);
})();
