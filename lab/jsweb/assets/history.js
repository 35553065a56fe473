/* A router over the session history: one shell for all addresses. */
(() => {
  const view = document.getElementById('app');
  const show = async (path) => {
    const page = await (await fetch('/api' + path)).json();
    document.title = page.title;
    view.innerHTML = `<h1>${page.title}</h1><p>${page.text}</p>`;
    for (const l of page.links) {
      const a = document.createElement('a');
      a.href = l.href;
      a.textContent = l.title;
      a.onclick = (e) => { e.preventDefault(); history.pushState({}, '', l.href); show(l.href); };
      view.append(a, ' ');
    }
  };
  addEventListener('popstate', () => show(location.pathname));
  show(location.pathname);
})();
