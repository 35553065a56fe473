// Runs in the world of the page before its own scripts. It tells the isolated
// world (world.js) which addresses scripts want to go to, by events of the
// document: their strings are copied, so nothing of the page is shared. The page
// can send such events, too; all it gains is links, whose number is bounded there.
(() => {
  const { apply, construct, defineProperty } = Reflect;
  const Address = URL, Told = HashChangeEvent, text = String;
  const dispatch = EventTarget.prototype.dispatchEvent;
  const base = Object.getOwnPropertyDescriptor(Node.prototype, 'baseURI').get;
  const href = Object.getOwnPropertyDescriptor(URL.prototype, 'href').get;
  const page = document;
  let left = 200;
  const tell = (kind, what) => {
    if (left <= 0) return;
    left--;
    try { apply(dispatch, page, [construct(Told, [kind, { __proto__: null, newURL: what }])]); } catch (e) { /* the document is gone */ }
  };
  const seen = { __proto__: null };
  const note = (u) => {
    try {
      const a = apply(href, construct(Address, [text(u), apply(base, page, [])]), []);
      if (left > 0 && !seen[a]) { seen[a] = true; tell('freshet-link', a); }
    } catch (e) { /* not an address */ }
  };
  for (const name of ['pushState', 'replaceState']) {
    const was = History.prototype[name];
    History.prototype[name] = function (state, title, url) {
      if (url !== undefined && url !== null) note(url);
      return apply(was, this, [state, title, url]);
    };
  }
  const put = (name, value) => { try { defineProperty(window, name, { value, writable: false, configurable: false }); } catch (e) { /* stays */ } };
  put('open', (u) => { if (u) note(u); return null; });
  put('print', () => {});
  for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebSocket', 'WebSocketStream', 'WebTransport', 'EventSource', 'SharedWorker', 'fetchLater']) {
    try { delete window[name]; } catch (e) { /* stays */ }
  }

  const Observer = window.IntersectionObserver;
  if (Observer) {
    window.IntersectionObserver = class extends Observer {
      observe(e) { tell('freshet-observes', ''); super.observe(e); }
    };
  }
})();
