/*! In the manner of react-dom: takes over what the server rendered. */
(() => {
  const state = JSON.parse(document.getElementById('__NEXT_DATA__').textContent);
  const hydrateRoot = (at) => {
    for (const a of at.querySelectorAll('a')) a.addEventListener('click', () => fetch('/api' + a.pathname));
    if (state.props.title !== document.title) document.title = state.props.title;
  };
  hydrateRoot(document.getElementById('__next'));
})();
