/* Counts visitors. */
(function (w, d) {
  w._q = w._q || [];
  w._q.push(['page', d.location.pathname]);
  var s = d.createElement('script');
  s.async = 1;
  s.src = '/static/beacon.js';
  var f = d.getElementsByTagName('script')[0];
  f.parentNode.insertBefore(s, f);
})(window, document);
