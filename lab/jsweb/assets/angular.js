/*! In the manner of Angular: a platform that bootstraps a component. */
(() => {
  const platformBrowser = () => ({
    bootstrapModule(c) {
      const host = document.querySelector(c.selector);
      host.setAttribute('ng-version', '21.0.0');
      new c(host).ngOnInit();
    },
  });
  class AppComponent {
    static selector = 'app-root';
    constructor(host) { this.host = host; }
    async ngOnInit() {
      const page = await (await fetch('/api' + location.pathname)).json();
      document.title = page.title;
      for (const part of [['h1', page.title], ['p', page.text]]) {
        const e = document.createElement(part[0]);
        e.textContent = part[1];
        this.host.appendChild(e);
      }
      for (const l of page.links) {
        const a = document.createElement('a');
        a.setAttribute('routerlink', l.href);
        a.href = l.href;
        a.textContent = l.title;
        this.host.appendChild(a);
      }
    }
  }
  platformBrowser().bootstrapModule(AppComponent);
})();
