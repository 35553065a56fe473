/* Ornaments: a menu that folds, a button to the top. */
document.addEventListener('DOMContentLoaded', () => {
  const b = document.createElement('button');
  b.textContent = 'top';
  b.onclick = () => scrollTo(0, 0);
  document.body.appendChild(b);
  for (const n of document.querySelectorAll('nav')) n.classList.add('folded');
});
