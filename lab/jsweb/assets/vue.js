/*! In the manner of Vue: reactive data and a template. */
(() => {
  const createApp = (options) => ({
    mount(sel) {
      const el = document.querySelector(sel);
      const data = new Proxy(options.data(), { set(o, k, v) { o[k] = v; queueMicrotask(draw); return true; } });
      const draw = () => { el.innerHTML = options.template(data); el.removeAttribute('v-cloak'); el.setAttribute('data-v-app', ''); };
      draw();
      options.mounted.call(data);
    },
  });
  createApp({
    data: () => ({ title: '', text: '', links: [] }),
    template: (d) => `<h1>${d.title}</h1><p>${d.text}</p>` + d.links.map((l) => `<div class="card"><a href="${l.href}">${l.title}</a></div>`).join(''),
    mounted() {
      const x = new XMLHttpRequest();
      x.onload = () => { const p = JSON.parse(x.responseText); document.title = p.title; this.title = p.title; this.text = p.text; this.links = p.links; };
      x.open('GET', '/api' + location.pathname);
      x.send();
    },
  }).mount('#app');
})();
