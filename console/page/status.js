// Replaces the live part of a page by what the server sends.
"use strict";
const live = document.getElementById("live");
const source = new EventSource(live.dataset.events);
source.onmessage = (e) => {
  if (live.matches(":active")) return; // a button is being pressed
  const focus = live.contains(document.activeElement) && document.activeElement.id;
  live.innerHTML = JSON.parse(e.data);
  live.classList.remove("stale");
  if (focus) document.getElementById(focus)?.focus();
};
source.onerror = () => live.classList.add("stale");
