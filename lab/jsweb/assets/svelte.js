/*! In the manner of Svelte: a compiled component that makes its nodes. */
class SvelteComponent {
  constructor({ target }) { this.target = target; }
  $set(page) {
    document.title = page.title;
    const main = document.createElement('main');
    main.className = 'svelte-1x2y3z';
    main.append(Object.assign(document.createElement('h1'), { textContent: page.title }), Object.assign(document.createElement('p'), { textContent: page.text }));
    for (const { href, title } of page.links) main.append(Object.assign(document.createElement('a'), { href, textContent: title }), ' ');
    this.target.replaceChildren(main);
  }
}
const app = new SvelteComponent({ target: document.getElementById('svelte') });
fetch('/api' + location.pathname).then((r) => r.json()).then((p) => app.$set(p));
