"use strict";
// Puts what the run sends into the page: the whole of it first, then the parts that have changed.
const page = document.getElementById("live");
const state = document.getElementById("live-state");
const events = new EventSource("events");

// What somebody has opened or scrolled to stays as it is.
function keep(before, after) {
  const opened = new Set([...before.querySelectorAll("details[open] > summary")].map((it) => it.textContent));
  for (const summary of after.querySelectorAll("details > summary")) {
    if (opened.has(summary.textContent)) summary.parentElement.open = true;
  }
  const scrolled = before.querySelectorAll(".scroll");
  requestAnimationFrame(() => {
    after.querySelectorAll(".scroll").forEach((it, n) => { it.scrollLeft = scrolled[n] ? scrolled[n].dataset.left || 0 : 0; });
  });
}

function say(words, tone) {
  state.textContent = words;
  state.className = tone;
}

document.addEventListener("scroll", (event) => {
  if (event.target.classList && event.target.classList.contains("scroll")) event.target.dataset.left = event.target.scrollLeft;
}, true);

events.addEventListener("past", (event) => {
  const fresh = document.createElement("main");
  fresh.innerHTML = event.data;
  keep(page, fresh);
  page.replaceChildren(...fresh.childNodes);
  say("live", "good");
});

events.addEventListener("interval", (event) => {
  const fresh = document.createElement("main");
  fresh.innerHTML = event.data;
  for (const part of [...fresh.children]) {
    const old = document.getElementById(part.id);
    if (!old) continue;
    keep(old, part);
    old.replaceWith(part);
  }
  say("live", "good");
});

events.addEventListener("end", (event) => {
  events.close();
  say(event.data, "note");
});

events.addEventListener("error", () => say("weir does not answer: it has ended, or the link broke", "doubtful"));
