// Runs before the scripts of each page: notes where they want to go.
(() => {
  const places = [];
  const note = (u) => {
    try {
      const a = new URL(String(u), document.baseURI).href;
      if (places.length < 1000 && !places.includes(a)) places.push(a);
    } catch (e) { /* not an address */ }
  };
  for (const name of ['pushState', 'replaceState']) {
    const was = history[name].bind(history);
    history[name] = (state, title, url) => {
      if (url !== undefined && url !== null) note(url);
      return was(state, title, url);
    };
  }
  window.open = (u) => { if (u) note(u); return null; };
  for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection']) {
    try { delete window[name]; } catch (e) { /* stays */ }
  }
  window.print = () => {};

  let observed = false;
  const Observer = window.IntersectionObserver;
  if (Observer) {
    window.IntersectionObserver = class extends Observer {
      observe(e) { observed = true; super.observe(e); }
    };
  }

  // Links of the document and of open shadow trees.
  const roots = (root, f) => {
    f(root);
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT);
    while (walk.nextNode()) if (walk.currentNode.shadowRoot) roots(walk.currentNode.shadowRoot, f);
  };
  const links = () => {
    const out = new Set(places);
    roots(document, (r) => { for (const a of r.querySelectorAll('a[href], area[href]')) { if (typeof a.href === 'string') out.add(a.href); } });
    return out;
  };
  const html = (limit) => {
    const d = document.documentElement;
    const text = d ? d.outerHTML : '';
    return text.length > limit ? text.slice(0, limit) : text;
  };
  const api = {
    // The third tells whether the page observes what is visible.
    size: () => [document.documentElement ? document.documentElement.scrollHeight : 0, document.getElementsByTagName('*').length, observed ? 1 : 0],
    top: () => { const d = document.scrollingElement || document.documentElement; if (d) d.scrollTop = 0; },
    scroll: () => {
      const d = document.scrollingElement || document.documentElement;
      if (d) d.scrollTop = d.scrollHeight;
      window.dispatchEvent(new Event('scroll'));
    },
    // Resolves when all observers of the page have been told what is visible now:
    // they are told in the order in which they were made, and ours is the last.
    frame: () => new Promise((done) => requestAnimationFrame(() => {
      const last = new Observer(() => { last.disconnect(); done(true); });
      last.observe(document.documentElement);
    })),
    collect: (limit, most) => JSON.stringify({ url: location.href, html: html(limit), links: [...links()].slice(0, most) }),
    // Addresses within this document that only a script makes something of.
    routes: () => [...links()].filter((u) => {
      const h = u.indexOf('#');
      return h > 0 && u.slice(0, h) === location.href.split('#')[0] && (u[h + 1] === '/' || u[h + 1] === '!') && u !== location.href;
    }),
    go: (u) => { location.hash = new URL(u).hash; },
    body: (limit) => JSON.stringify({ html: document.body ? document.body.innerHTML.slice(0, limit) : '', links: [...links()] }),
  };
  Object.defineProperty(window, Symbol.for('freshet'), { value: api });
})();
