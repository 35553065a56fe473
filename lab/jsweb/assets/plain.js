/* Lists are filled by hand; pages without a list are left alone. */
document.addEventListener('DOMContentLoaded', () => {
  const list = document.getElementById('list');
  if (!list) return;
  fetch('/api' + location.pathname).then((r) => r.json()).then((page) => {
    list.innerHTML = page.links.map((l) => '<li><a href="' + l.href + '">' + l.title + '</a></li>').join('');
  });
});
