package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/freshet/freshet/index"
)

// searchView is what search.html shows.
type searchView struct {
	frame
	Query    string
	Kind     string
	ByDate   bool
	Operator bool
	Asked    bool
	Problem  string
	Results  *Results
	Facets   []facetView
	Pages    []pageLink
	Kinds    []kindOption

	Documents  int64 // in the index; known where it is shown
	Empty      bool  // the index
	KindLabel  string
	OtherOrder string    // address of the same search in the other order
	AllKinds   string    // ... of all kinds
	Filtered   bool      // by more than words
	Unfiltered string    // ... by the words alone
	Star       *pageLink // to words with that beginning

	sign        func(address string) string // of links that are counted; nil where none is
	leadThrough bool                        // this server, for browsers without pings
}

// kindOption is a choice of what to search.
type kindOption struct{ Value, Label string }

var kinds = []kindOption{{"", "All"}, {"web", "Web pages"}, {"file", "Files"}, {"audio", "Audio"}, {"video", "Video"}, {"image", "Images"}, {"document", "Documents"}}

type facetView struct {
	Name   string
	Values []facetLink
}

type facetLink struct {
	Label string
	Count int
	Href  string
	On    bool
	Hint  string
}

type pageLink struct {
	Label string
	Href  string
	On    bool
	Hint  string // what an arrow means
}

func (s *Server) searchPage(w http.ResponseWriter, r *http.Request) {
	v := &searchView{frame: s.pageFrame(r, "/"), Query: r.URL.Query().Get("q"), Kind: r.URL.Query().Get("kind"), ByDate: r.URL.Query().Get("sort") == "date", Operator: s.mayRead(r)}
	if s.config.Clicked != nil {
		v.sign, v.leadThrough = s.signAddress, !sendsPings(r)
	}
	v.Kinds = kinds
	code := http.StatusOK
	if r.URL.Query().Has("q") {
		v.Asked = true
		req, err := searchRequest(r, resultsAPage)
		if err == nil {
			req.Facets = true
			if v.Results, err = s.findBounded(r.Context(), req); err != nil {
				code, v.Problem = s.searchProblem(req, err)
				v.Problem = strings.ToUpper(v.Problem[:1]) + v.Problem[1:] + "."
			}
		} else {
			code, v.Problem = http.StatusBadRequest, err.Error()
		}
		if err == nil {
			v.Facets = facetViews(r.URL, v.Query, v.Results.Facets)
			v.Pages = pageLinks(r.URL, req.Offset, v.Results.Total)
			v.addAdvice(r.URL)
		}
	}
	if !v.Asked || (v.Results != nil && v.Results.Total == 0) {
		if st, err := s.operator.Status(r.Context()); err == nil {
			v.Documents = st.Indexed + st.Files()
			v.Empty = v.Documents == 0
		}
	}
	s.renderTemplate(w, code, "search.html", v)
}

// addAdvice fills in what may help where little or nothing was found.
func (v *searchView) addAdvice(u *url.URL) {
	order := "date"
	if v.ByDate {
		order = ""
	}
	v.OtherOrder = withParameter(u, "sort", order)
	v.AllKinds = withParameter(u, "kind", "")
	v.KindLabel = v.Kind
	for _, k := range kinds {
		if k.Value == v.Kind {
			v.KindLabel = strings.ToLower(k.Label)
		}
	}
	words := slices.DeleteFunc(strings.Fields(v.Query), func(w string) bool {
		_, _, filter := strings.Cut(w, ":")
		return filter || strings.HasPrefix(w, "-")
	})
	v.Filtered = len(words) > 0 && len(words) < len(strings.Fields(v.Query)) && !strings.Contains(v.Query, `"`)
	v.Unfiltered = withParameter(u, "q", strings.Join(words, " "))
	if last := len(words) - 1; last >= 0 && !strings.ContainsAny(v.Query, `"*()|:`) {
		starred := v.Query + "*"
		v.Star = &pageLink{Label: starred, Href: withParameter(u, "q", starred)}
	}
	if v.Results.Total == 0 { // narrowing nothing helps nobody: what narrows may be taken away
		for i := range v.Facets {
			v.Facets[i].Values = slices.DeleteFunc(v.Facets[i].Values, func(f facetLink) bool { return !f.On })
		}
		v.Facets = slices.DeleteFunc(v.Facets, func(f facetView) bool { return len(f.Values) == 0 })
	}
}

// languages names those whose words are folded to their stems.
var languages = map[string]string{
	"ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "en": "English", "es": "Spanish", "et": "Estonian", "fi": "Finnish", "fr": "French",
	"hu": "Hungarian", "it": "Italian", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese",
	"ro": "Romanian", "ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian",
}

// facetViews makes links that add a value to the query, or take it away.
func facetViews(u *url.URL, q string, facets map[string][]index.Count) []facetView {
	var out []facetView
	for _, f := range []struct{ field, name string }{{"host", "Host"}, {"type", "Type"}, {"lang", "Language"}, {"kind", "Kind"}, {"genre", "Genre"}, {"year", "Year"}, {"ext", "Extension"}} {
		view := facetView{Name: f.name}
		for i, c := range facets[f.field] {
			if i == 8 {
				break
			}
			word := f.field + ":" + c.Value
			if strings.ContainsAny(c.Value, " ()|\"") {
				word = f.field + `:"` + strings.ReplaceAll(c.Value, `"`, "") + `"`
			}
			on := strings.Contains(" "+q+" ", " "+word+" ")
			next := strings.TrimSpace(q + " " + word)
			if on {
				next = strings.Join(strings.Fields(strings.Replace(" "+q+" ", " "+word+" ", " ", 1)), " ")
			}
			label := c.Value
			if name := languages[c.Value]; name != "" && f.field == "lang" {
				label = name
			}
			view.Values = append(view.Values, facetLink{Label: label, Count: c.Count, Href: withParameter(u, "q", next), On: on, Hint: hintText(c.Value, on)})
		}
		if len(view.Values) > 1 || (len(view.Values) == 1 && view.Values[0].On) {
			out = append(out, view)
		}
	}
	return append(out, dateView(u, q))
}

// hintText shows a value that may be cut off; one that is on tells otherwise.
func hintText(value string, on bool) string {
	if on || len(value) < 20 {
		return ""
	}
	return value
}

// dateView makes the links that narrow a search to recent changes.
func dateView(u *url.URL, q string) facetView {
	view := facetView{Name: "Changed"}
	rest := strings.Join(slices.DeleteFunc(strings.Fields(q), func(w string) bool { return strings.HasPrefix(w, "date:") }), " ")
	for _, d := range []struct{ label, age string }{{"last day", "1d"}, {"last week", "7d"}, {"last month", "30d"}, {"last year", "365d"}} {
		word := "date:" + d.age
		on := strings.Contains(" "+q+" ", " "+word+" ")
		next := strings.TrimSpace(rest + " " + word)
		if on {
			next = rest
		}
		view.Values = append(view.Values, facetLink{Label: d.label, Href: withParameter(u, "q", next), On: on})
	}
	return view
}

// withParameter returns the page's address with one parameter changed, on page one.
func withParameter(u *url.URL, key, value string) string {
	v := u.Query()
	v.Del("offset")
	if value == "" {
		v.Del(key)
	} else {
		v.Set(key, value)
	}
	return "/?" + v.Encode()
}

func pageLinks(u *url.URL, offset, total int) []pageLink {
	last := (min(total, index.MaxOffset+resultsAPage) - 1) / resultsAPage
	if last <= 0 {
		return nil
	}
	here := offset / resultsAPage
	link := func(label string, p int, hint string) pageLink {
		return pageLink{Label: label, Href: withParameter(u, "offset", strconv.Itoa(p*resultsAPage)), On: p == here, Hint: hint}
	}
	var out []pageLink
	if here > 0 {
		out = append(out, link("‹", here-1, "prev"))
	}
	for p := max(0, here-4); p <= min(last, here+4); p++ {
		out = append(out, link(strconv.Itoa(p+1), p, ""))
	}
	if here < last {
		out = append(out, link("›", here+1, "next"))
	}
	return out
}
