package jsweb

// Truth is what can be found on a web, and how.
type Truth struct {
	// URLs are all pages that can be reached with a browser.
	URLs map[string]bool
	// Only are those of them that no robot without one finds.
	Only map[string]bool
	// Links are the pages that have a link into Only: what a perfect oracle would
	// render to find all addresses.
	Links map[string]bool
	// Needed are those and the pages whose text their scripts make: what it would
	// render to have all text, too.
	Needed map[string]bool
}

// Truth walks the web.
func (w *Web) Truth() *Truth {
	t := &Truth{URLs: map[string]bool{}, Only: map[string]bool{}, Links: map[string]bool{}, Needed: map[string]bool{}}
	for _, s := range w.of {
		s.addTruth(t)
	}
	return t
}

// addTruth adds one site. Without a browser a page is found if all links on the
// way to it stand in HTML: the walk without is done first.
func (s *site) addTruth(t *Truth) {
	url := func(n int) string { return "http://" + s.host + s.pathOfPage(n) }
	plain := map[int]bool{0: true}
	for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
		for i, c := range s.childPages(queue[0]) {
			if !s.isDynamicLink(queue[0], i) && !plain[c] {
				plain[c] = true
				queue = append(queue, c)
			}
		}
	}
	seen := map[int]bool{0: true}
	for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		t.URLs[url(n)] = true
		if !plain[n] {
			t.Only[url(n)] = true
		}
		if s.kind.text(s.isList(n)) {
			t.Needed[url(n)] = true
		}
		for i, c := range s.childPages(n) {
			if s.isDynamicLink(n, i) {
				t.Links[url(n)], t.Needed[url(n)] = true, true
			}
			if !seen[c] {
				seen[c] = true
				queue = append(queue, c)
			}
		}
	}
}

// isDynamicLink reports whether the i-th link of a page is made by scripts.
func (s *site) isDynamicLink(n, i int) bool {
	if s.kind.Name == "scroll" && i < 2 {
		return false
	}
	return s.kind.links(s.isList(n))
}
