/* A router by fragment: one document, its routes after #/. */
(() => {
  const view = document.getElementById('app');
  const show = async () => {
    const part = location.hash.replace(/^#\/?/, '') || 'start';
    const page = await (await fetch('/api/hash/' + part)).json();
    view.innerHTML = `<h1>${page.title}</h1><p>${page.text}</p>` + page.links.map((l) => `<a href="${l.href}">${l.title}</a> `).join('');
  };
  addEventListener('hashchange', show);
  show();
})();
