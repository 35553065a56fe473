/*! In the manner of react-dom: elements as values, a root that renders them. */
(() => {
  const h = (type, props, ...children) => ({ type, props: props || {}, children: children.flat() });
  const make = (v) => {
    if (v === null || v === undefined) return document.createTextNode('');
    if (typeof v !== 'object') return document.createTextNode(String(v));
    if (typeof v.type === 'function') return make(v.type(v.props));
    const e = document.createElement(v.type);
    for (const [k, x] of Object.entries(v.props)) e.setAttribute(k === 'className' ? 'class' : k, x);
    for (const c of v.children) e.appendChild(make(c));
    return e;
  };
  const createRoot = (at) => ({ render(v) { at.replaceChildren(make(v)); } });
  const Page = ({ page }) => h('main', null, h('h1', null, page.title), h('p', null, page.text),
    h('ul', { className: 'links' }, page.links.map((l) => h('li', null, h('a', { href: l.href }, l.title)))));
  const root = createRoot(document.getElementById('root'));
  root.render(h('p', null, 'Loading…'));
  fetch('/api' + location.pathname).then((r) => r.json()).then((page) => { document.title = page.title; root.render(h(Page, { page })); });
})();
