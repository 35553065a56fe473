package extract

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html/atom"
)

// mountIDs are the ids of elements that client-side frameworks fill.
var mountIDs = []string{"root", "app", "__next", "__nuxt", "svelte", "main-app", "application", "ember-app", "___gatsby"}

// attributeMarks are attributes by which frameworks mark what they rendered.
var attributeMarks = map[string]struct {
	framework string
	hydrated  bool
}{
	"ng-version": {"angular", false}, "ng-app": {"angular", false}, "ng-server-context": {"angular", true}, "data-reactroot": {"react", true},
	"data-server-rendered": {"vue", true}, "data-v-app": {"vue", false}, "v-cloak": {"vue", false}, "data-svelte-h": {"svelte", true}, "data-sveltekit-preload-data": {"svelte", true},
}

// stateMarks in inline scripts and ids carry the state of a page that was
// rendered on the server.
var stateMarks = []struct{ mark, framework string }{
	{"__NEXT_DATA__", "next"}, {"__NUXT__", "nuxt"}, {"__INITIAL_STATE__", ""}, {"__PRELOADED_STATE__", ""}, {"__APOLLO_STATE__", ""}, {"__sveltekit", "svelte"}, {"ng-state", "angular"}, {"__remixContext", "remix"},
}

func (s *scanner) traitAttr(a atom.Atom, key, val []byte) {
	if !s.o.Traits {
		return
	}
	t := &s.page.Traits
	k := string(key)
	if m, ok := attributeMarks[k]; ok {
		s.noteFramework(m.framework)
		t.Hydrated = t.Hydrated || m.hydrated
	}
	switch {
	case k == "type" && a == atom.Script:
		s.data = !isExecutableType(val)
	case k == "id" && slices.Contains(mountIDs, string(val)) && (a == atom.Div || a == atom.Main || a == atom.Section):
		s.mount = true
	case k == "id" && a == atom.Script:
		s.stateMark(val)
	case k == "src" && a == atom.Script:
		if u, err := s.at.Resolve(val); err == nil && len(t.Scripts) < 100 {
			t.Scripts = append(t.Scripts, u.String())
		}
	}
}

// noteFramework notes a framework by name.
func (s *scanner) noteFramework(name string) {
	name, _, _ = strings.Cut(name, " ")
	t := &s.page.Traits
	if s.o.Traits && name != "" && len(t.Frameworks) < 10 && !slices.Contains(t.Frameworks, name) {
		t.Frameworks = append(t.Frameworks, name)
	}
}

func (s *scanner) stateMark(text []byte) {
	for _, m := range stateMarks {
		if bytes.Contains(text, []byte(m.mark)) {
			s.page.Traits.Hydrated = true
			s.noteFramework(m.framework)
		}
	}
}

// maxCode bounds the inline scripts kept.
const maxCode = 256 << 10

// isExecutableType reports whether a script element of this type is run: others carry
// data (JSON-LD, templates).
func isExecutableType(kind []byte) bool {
	k := strings.ToLower(strings.TrimSpace(string(kind)))
	k, _, _ = strings.Cut(k, ";")
	return k == "" || k == "module" || strings.HasSuffix(k, "javascript") || strings.HasSuffix(k, "ecmascript")
}

// hiddenText looks at the content of script and noscript elements.
func (s *scanner) hiddenText(raw []byte) {
	t := &s.page.Traits
	if s.script {
		t.Inline += len(raw)
		if !s.data && len(bytes.TrimSpace(raw)) > 0 {
			t.Code = append(t.Code, raw[:min(len(raw), max(0, maxCode-len(t.Code)))]...)
			t.Code = append(t.Code, '\n')
		}
	}
	if len(raw) > 64<<10 {
		raw = raw[:64<<10]
	}
	s.stateMark(raw)
	lower := bytes.ToLower(raw[:min(len(raw), 2000)])
	if bytes.Contains(lower, []byte("javascript")) && (bytes.Contains(lower, []byte("enable")) || bytes.Contains(lower, []byte("need to"))) {
		t.NoScript = true
	}
}
