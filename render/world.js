// Runs in a world of its own (DevTools: isolated world): it sees the document, but
// none of the objects and functions that the page's scripts may have replaced.
// Attributes of the document are read by their accessors, since elements with
// names (<img name=body>) hide them in every world. All that it returns is bounded.
(() => {
  const get = (proto, name) => {
    const g = Object.getOwnPropertyDescriptor(proto, name).get;
    return (o) => g.call(o);
  };
  const root = get(Document.prototype, 'documentElement'), body = get(Document.prototype, 'body'), scrolling = get(Document.prototype, 'scrollingElement');
  const baseURI = get(Node.prototype, 'baseURI'), outer = get(Element.prototype, 'outerHTML'), inner = get(Element.prototype, 'innerHTML'), shadow = get(Element.prototype, 'shadowRoot');
  const all = (r, selector) => (r === document ? Document.prototype : DocumentFragment.prototype).querySelectorAll.call(r, selector);
  const elements = () => Document.prototype.getElementsByTagName.call(document, '*');

  const maxNoted = 200, maxAddress = 4096, maxRoots = 1000;
  const noted = new Set();
  let observed = false;
  const listen = EventTarget.prototype.addEventListener;
  listen.call(document, 'freshet-link', (e) => {
    if (noted.size < maxNoted && typeof e.newURL === 'string' && e.newURL.length <= maxAddress) noted.add(e.newURL);
  });
  listen.call(document, 'freshet-observes', () => { observed = true; });

  // Links of the document and of open shadow trees: at most most of them, of bytes
  // characters in all.
  const links = (most, bytes) => {
    const out = new Set();
    let left = bytes;
    const add = (u) => {
      if (typeof u !== 'string' || u.length > maxAddress || out.has(u)) return;
      left -= u.length;
      if (left >= 0) out.add(u);
    };
    for (const u of noted) add(u);
    const queue = [document];
    for (let i = 0; i < queue.length && i < maxRoots && out.size < most && left > 0; i++) {
      for (const a of all(queue[i], 'a[href], area[href]')) {
        if (out.size >= most || left <= 0) break;
        add(a.href);
      }
      for (const e of i === 0 ? elements() : all(queue[i], '*')) {
        if (queue.length >= maxRoots) break;
        const s = shadow(e);
        if (s) queue.push(s);
      }
    }
    return [...out];
  };
  const cut = (text, limit) => (text.length > limit ? text.slice(0, limit) : text);
  globalThis.freshet = {
    // The third tells whether the page observes what is visible.
    size: () => { const d = root(document); return [d ? d.scrollHeight : 0, elements().length, observed ? 1 : 0]; },
    top: () => { const d = scrolling(document) || root(document); if (d) d.scrollTop = 0; },
    scroll: () => {
      const d = scrolling(document) || root(document);
      if (d) d.scrollTop = d.scrollHeight;
      window.dispatchEvent(new Event('scroll'));
    },
    // Resolves when all observers of the page have been told what is visible now:
    // they are told in the order in which they were made, and ours is the last.
    frame: () => new Promise((done) => requestAnimationFrame(() => {
      const last = new IntersectionObserver(() => { last.disconnect(); done(true); });
      last.observe(root(document));
    })),
    collect: (limit, most, bytes) => {
      const d = root(document);
      return JSON.stringify({ url: cut(location.href, maxAddress), html: d ? cut(outer(d), limit) : '', links: links(most, bytes) });
    },
    // Addresses within this document that only a script makes something of.
    routes: (most, bytes) => {
      const here = location.href.split('#')[0];
      return links(most, bytes).filter((u) => {
        const h = u.indexOf('#');
        return h > 0 && u.slice(0, h) === here && (u[h + 1] === '/' || u[h + 1] === '!') && u !== location.href;
      }).slice(0, 1000);
    },
    go: (u) => { location.hash = new URL(u).hash; },
    body: (limit, most, bytes) => {
      const b = body(document);
      return JSON.stringify({ html: b ? cut(inner(b), limit) : '', links: links(most, bytes) });
    },
  };
})();
