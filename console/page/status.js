// Replaces the live part of the status page by what the server sends.
"use strict";
const live = document.getElementById("live");
const source = new EventSource("/events");
source.onmessage = (e) => { live.innerHTML = JSON.parse(e.data); live.classList.remove("stale"); };
source.onerror = () => live.classList.add("stale");
