/* The first entries come with the page, the rest when its end is seen. */
document.addEventListener('DOMContentLoaded', () => {
  const list = document.getElementById('list');
  const end = document.getElementById('end');
  if (!list || !end) return;
  let from = list.children.length;
  let busy = false;
  const more = async () => {
    if (busy) return;
    busy = true;
    const page = await (await fetch('/api' + location.pathname + '?from=' + from + '&n=2')).json();
    for (const l of page.links) list.insertAdjacentHTML('beforeend', `<li style="height:2000px"><a href="${l.href}">${l.title}</a></li>`);
    from += page.links.length;
    busy = false;
    if (page.links.length === 0) seen.disconnect();
  };
  const seen = new IntersectionObserver((es) => { if (es.some((e) => e.isIntersecting)) more(); });
  seen.observe(end);
});
