package content

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/freshet/freshet/internal/rng"
	"golang.org/x/net/html"
)

var words = NewWords()

func TestVocabularies(t *testing.T) {
	t.Parallel()
	scripts := [...][]*unicode.RangeTable{English: {unicode.Latin}, Russian: {unicode.Cyrillic}, Lithuanian: {unicode.Latin}}
	for l := range languages {
		seen := map[string]bool{}
		for _, s := range words.words[l] {
			if seen[s] {
				t.Fatalf("%s: %q twice", l.Tag(), s)
			}
			seen[s] = true
			for _, r := range s {
				if !unicode.In(r, scripts[l]...) {
					t.Fatalf("%s: %q has the letter %q", l.Tag(), s, r)
				}
			}
		}
		if len(seen) != vocabularySize {
			t.Errorf("%s: %d words", l.Tag(), len(seen))
		}
	}
	if got := words.title[Lithuanian][slices.Index(words.words[Lithuanian], "į")]; got != "Į" {
		t.Errorf("capital of į is %q", got)
	}
}

// Frequencies of drawn ranks follow r^-1.05: chi-square over the first ranks
// and the tail.
func TestRanksAreZipf(t *testing.T) {
	t.Parallel()
	const n, cells = 400_000, 40
	var count [cells + 1]float64
	for i := range uint64(n) {
		count[min(words.drawWordRank(rng.Mix(5, i)), cells)]++
	}
	var norm float64
	for r := range vocabularySize {
		norm += math.Pow(float64(r+1), -zipfExponent)
	}
	var chi2, head float64
	for r := range cells {
		want := n * math.Pow(float64(r+1), -zipfExponent) / norm
		head += want
		chi2 += (count[r] - want) * (count[r] - want) / want
	}
	chi2 += (count[cells] - (n - head)) * (count[cells] - (n - head)) / (n - head)
	if chi2 > 80 { // 40 degrees of freedom: p = 0.0002
		t.Errorf("chi-square %.1f", chi2)
	}
}

// What the page says survives every habit: an independent parser finds the
// title, the text and all links.
func TestHabitsDoNotChangeMeaning(t *testing.T) {
	t.Parallel()
	for key := range uint64(300) {
		p := testPage(key)
		out := words.AppendHTML(nil, &p)
		doc, err := html.Parse(bytes.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		var title, text string
		var hrefs []string
		var walk func(*html.Node)
		walk = func(n *html.Node) {
			switch {
			case n.Type == html.TextNode && n.Parent.Data == "title":
				title += n.Data
			case n.Type == html.TextNode && n.Parent.Data == "p":
				text += n.Data
			case n.Type == html.ElementNode && n.Data == "a":
				hrefs = append(hrefs, n.Attr[0].Val)
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				walk(c)
			}
		}
		walk(doc)
		if want := string(words.AppendTitle(nil, p.Lang, p.Topic)); strings.TrimSpace(title) != want {
			t.Fatalf("habit %+v: title %q, want %q", p.Habit, title, want)
		}
		if got, want := fields(text), fields(string(words.AppendText(nil, &p))); got != want {
			t.Fatalf("habit %+v: text\n%s\nwant\n%s", p.Habit, got, want)
		}
		if len(hrefs) != len(p.Links) {
			t.Fatalf("habit %+v: %d links, want %d\n%s", p.Habit, len(hrefs), len(p.Links), out)
		}
		for i := range hrefs {
			if hrefs[i] != string(p.Links[i].Href) {
				t.Fatalf("link %d is %q, want %q", i, hrefs[i], p.Links[i].Href)
			}
		}
	}
}

func fields(s string) string { return strings.Join(strings.Fields(s), " ") }

func testPage(key uint64) Page {
	l := Language(key % uint64(languages))
	p := Page{Lang: l, Topic: words.Topic(key), Base: key, Sentences: 20, Habit: HabitOf(key), Drift: .2, Meta: "utf-8"}
	for i := range 9 {
		p.Links = append(p.Links, Link{
			Href:  []byte([]string{"/abcd.html", "http://www.aabbccdd.cz/?a=1&b='2'\"", "abcd.html", "./x/", "//h/p"}[i%5]),
			Topic: words.Topic(key + uint64(i)), Lang: l,
		})
	}
	return p
}

// A near-duplicate of similarity s shares the share s of its sentences.
func TestSimilarityIsAsAsked(t *testing.T) {
	t.Parallel()
	for _, drift := range []float64{0, .1, .5, 1} {
		a := Page{Base: 9, Sentences: 4000}
		b := a
		b.Version, b.Drift = 77, drift
		same := 0
		for i := range a.Sentences {
			if a.SentenceKey(i) == b.SentenceKey(i) {
				same++
			}
		}
		if got := float64(same) / 4000; math.Abs(got-(1-drift)) > .03 {
			t.Errorf("drift %.1f: %.3f of the sentences are the same", drift, got)
		}
	}
}

func TestScriptedLinksAreNotInTheSource(t *testing.T) {
	t.Parallel()
	p := testPage(3)
	p.Scripted = true
	out := words.AppendHTML(nil, &p)
	if bytes.Contains(out, []byte("abcd.html")) || bytes.Contains(out, []byte("<a ")) {
		t.Error("a link stands in the source")
	}
	if !bytes.Contains(out, []byte("lmth.dcba")) {
		t.Error("no link in the script")
	}
}

func BenchmarkPage(b *testing.B) {
	p := testPage(1)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = words.AppendHTML(buf[:0], &p)
	}
	b.SetBytes(int64(len(buf)))
}

// A page of a given size has that many bytes in all habits, its links are found,
// its letters are whole, and its versions differ, however small it is.
func TestPagesOfGivenSize(t *testing.T) {
	t.Parallel()
	links := []Link{{Href: []byte("/aaab.html"), Own: true}, {Href: []byte("http://www.example.org/?a=1&b=2")}}
	for key := range uint64(40) {
		for _, size := range []int{65, 66, 300, 777, 5000, 50_000} {
			p := Page{
				Lang: Language(key % uint64(languages)), Topic: words.Topic(key), Base: key, Drift: .3, Sentences: 12, Size: size,
				Habit: HabitOf(key), Note: "Revision 1",
			}
			if size >= 777 {
				p.Links = links
			}
			got := words.AppendHTML(nil, &p)
			if len(got) != size || !utf8.Valid(got) {
				t.Fatalf("page %d: %d bytes, want %d; whole letters: %v", key, len(got), size, utf8.Valid(got))
			}
			if found := hrefsOf(t, got); len(found) != len(p.Links) {
				t.Fatalf("page %d of %d bytes: links %v\n%s", key, size, found, got)
			}
			p.Version, p.Note = 1, "Revision 2"
			if next := words.AppendHTML(nil, &p); len(next) != size || bytes.Equal(next, got) {
				t.Fatalf("page %d of %d bytes: the next version has %d bytes, the same: %v", key, size, len(next), bytes.Equal(next, got))
			}
		}
	}
	p := Page{Sentences: 12, Size: 65, Links: links, Habit: HabitOf(0)}
	if got := words.AppendHTML(nil, &p); len(hrefsOf(t, got)) != 2 {
		t.Errorf("links of a page too small for them: %s", got)
	}
}

func hrefsOf(t *testing.T, page []byte) (out []string) {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "a" {
			out = append(out, n.Attr[0].Val)
		}
	}
	return out
}
