/* Wants to load more, and fails before it does. */
document.addEventListener('DOMContentLoaded', () => {
  const box = document.getElementById('more');
  box.dataset.state = window.config.endpoint.url;
  fetch(window.config.endpoint.url).then((r) => r.text()).then((t) => { box.innerHTML = t; });
});
