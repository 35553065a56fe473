// Replaces the live parts of a page by what the server sends; what stands
// between them (forms that are being filled in) stays.
"use strict";
const live = document.getElementById("live");
const source = new EventSource(live.dataset.events);
source.onmessage = (e) => {
  const sent = document.createElement("template");
  sent.innerHTML = JSON.parse(e.data);
  for (const part of live.querySelectorAll("[data-part]")) {
    if (part.matches(":active")) continue; // a button is being pressed
    const now = sent.content.querySelector(`[data-part="${part.dataset.part}"]`);
    if (!now || now.innerHTML === part.innerHTML) continue;
    const focus = part.contains(document.activeElement) && document.activeElement.id;
    part.innerHTML = now.innerHTML;
    if (focus) document.getElementById(focus)?.focus();
  }
  live.classList.remove("stale");
};
source.onerror = () => live.classList.add("stale");
