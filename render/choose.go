package render

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"regexp"
	"strings"
	"sync"

	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/extract"
)

// Rules are what decides beside the pages themselves.
type Rules struct {
	All    bool             // render every page with scripts
	Always []*regexp.Regexp // of URLs
	Never  []*regexp.Regexp // of URLs; goes before Always
	// Cost is how many renders one is ready to make for one that gains; a page is
	// rendered where it gains with a probability above 1/Cost. Default 4.
	Cost float64
	// LinksOnly counts new addresses as a gain, but not text.
	LinksOnly bool
}

// Chooser decides which pages are rendered. What it learns lives in the keeper.
//
// In order: a rule decides; a page without scripts has nothing to gain; else the
// page's features and what its scripts can do (each text examined once) make
// its class, and the page is rendered if pages of its template gain often
// enough by what was seen so far: the posterior mean of a Bernoulli variable
// with a Beta prior, whose mean is that of all pages of the class. It is asked
// twice: when a page was fetched, to queue it, and when its turn in the browser
// has come, by what was learned meanwhile. Then the second and third page of an
// unknown template wait for the first. A template that is
// not rendered is looked at again after 3, 30, 300 ... pages.
type Chooser struct {
	rules   Rules
	scripts *scripts
	tallies *tallies
	known   templateText
}

// NewChooser returns a chooser.
func NewChooser(k Keeper, r Rules) *Chooser {
	if r.Cost <= 0 {
		r.Cost = 4
	}
	return &Chooser{rules: r, scripts: newScripts(k), tallies: newTallies(k)}
}

// Scripts returns how many scripts were fetched and examined since the start.
func (c *Chooser) Scripts() (fetched, examined int64) {
	c.scripts.mu.Lock()
	defer c.scripts.mu.Unlock()
	return c.scripts.fetched, c.scripts.examined
}

// Wants implements crawl.Renderer.
func (c *Chooser) Wants(ctx context.Context, f *crawl.Fetched) crawl.Decision {
	address := f.URL.String()
	if why := matchingRule(c.rules.Never, address); why != "" {
		return crawl.Decision{Why: "a rule says never: " + why}
	}
	if why := matchingRule(c.rules.Always, address); why != "" {
		return crawl.Decision{Render: true, Why: "a rule says always: " + why}
	}
	if c.rules.All {
		return crawl.Decision{Render: true, Why: "all pages are rendered"}
	}
	if f.Answer.Status != 200 || f.Answer.Truncated {
		return crawl.Decision{Why: "not a whole page"}
	}
	t := &f.Page.Traits
	if len(t.Scripts) == 0 && len(t.Code) == 0 {
		return crawl.Decision{Why: "it has no scripts"}
	}
	cl, what := c.classifyPage(ctx, f)
	return c.decideByGain(ctx, f, cl, what)
}

func matchingRule(rules []*regexp.Regexp, address string) string {
	for _, r := range rules {
		if r.MatchString(address) {
			return r.String()
		}
	}
	return ""
}

// maxScripts is how many scripts of a page are looked at.
const maxScripts = 8

// examineScripts returns the strongest verdict on the page's scripts.
func (c *Chooser) examineScripts(ctx context.Context, f *crawl.Fetched) (v Verdict, what string) {
	t := &f.Page.Traits
	v, what = Inert, "its scripts build nothing"
	take := func(e Examined, where string) {
		if e.Verdict.verdictLevel() > v.verdictLevel() {
			v, what = e.Verdict, fmt.Sprintf("%s: %s", where, strings.Join(e.Marks, ", "))
		}
	}
	if e, err := c.scripts.examineInline(ctx, t.Code); err == nil {
		take(e, "inline script")
	}
	for i := len(t.Scripts) - 1; i >= max(0, len(t.Scripts)-maxScripts) && v != App; i-- { // libraries come first, the app last
		if e, err := c.scripts.examineAddress(ctx, t.Scripts[i], f.Get); err == nil {
			take(e, t.Scripts[i])
		}
	}
	return v, what
}

// Bounds of what counts as nearly no text and nearly no links.
const (
	littleText = 200
	fewLinks   = 3
)

// classifyPage puts a page into a class by its features.
func (c *Chooser) classifyPage(ctx context.Context, f *crawl.Fetched) (class, string) {
	t := &f.Page.Traits
	bare := f.Page.Length < littleText && len(f.Page.Links) < fewLinks
	few := c.tallies.noteLinkCount(f.URL.Host(), len(f.Page.Links), !f.Queued)
	if t.Hydrated && !bare && !t.EmptyMount {
		return classes["hydrated"], "rendered by the server, with state for its scripts"
	}
	v, what := c.examineScripts(ctx, f)
	if len(t.Frameworks) > 0 && v != App && !t.Hydrated && (bare || t.EmptyMount) {
		v, what = App, "marks of "+strings.Join(t.Frameworks, ", ")
	}
	switch {
	case v == App && (bare || t.EmptyMount):
		return classes["empty"], what
	case t.NoScript && bare:
		return classes["noscript"], "it says that it needs JavaScript"
	case v == App && few:
		return classes["few"], what
	case v == App:
		return classes["app"], what
	case v == Builds && len(f.Page.Links) < fewLinks:
		return classes["sparse"], what
	case v == Builds:
		return classes["builds"], what
	case bare || t.EmptyMount:
		return classes["blank"], what
	}
	return classes["inert"], what
}

// tag is what Learn must know of a decision.
type tag struct{ class, template string }

// unproven is how many renders of a template must be back before its next pages
// are decided on by them.
const unproven = 2

// decideByGain decides by what renders of alike pages gained.
func (c *Chooser) decideByGain(ctx context.Context, f *crawl.Fetched, cl class, what string) crawl.Decision {
	c.tallies.mu.Lock()
	defer c.tallies.mu.Unlock()
	names := tag{"class " + cl.name, templateOf(f.URL, f.Page.Traits.Scripts)}
	all, err := c.tallies.loadTally(ctx, names.class)
	if err != nil {
		return crawl.Decision{Why: "the table of templates cannot be read: " + err.Error()}
	}
	l, err := c.tallies.loadTally(ctx, names.template)
	if err != nil {
		return crawl.Decision{Why: "the table of templates cannot be read: " + err.Error()}
	}
	p := gainProbability(cl, all.Tally, l.Tally)
	why := fmt.Sprintf("class %s (%s); %d of %d renders of its template gained, chance %.2f", cl.name, what, l.Gained, l.Tried, p)
	worth := p*c.rules.Cost >= 1
	if !f.Queued {
		l.Seen++
		if !worth && isExploration(l.Tally, cl.classMean(all.Tally)) {
			l.owed++
			why += ", looked at again"
			worth = true
		}
		return crawl.Decision{Render: worth, Why: why}
	}
	switch {
	case l.Tried < unproven && l.away > 0:
		return crawl.Decision{Wait: true, Why: why + ", the template's first render is under way"}
	case worth:
	case l.owed > 0:
		l.owed--
		why += ", looked at again"
	default:
		return crawl.Decision{Why: why}
	}
	l.away++
	return crawl.Decision{Render: true, Why: why, Tag: names}
}

// isExploration says at which pages of a template that is not worth it one is
// rendered all the same: the 3rd, 30th, 300th ...; of one that was tried, or of
// a class that hardly ever gains, only from the 30th on.
func isExploration(t Tally, mean float64) bool {
	first := int64(3)
	if mean < .1 || t.Tried > 0 {
		first = 30
	}
	for next := first; next <= t.Seen; next *= 10 {
		if next == t.Seen {
			return true
		}
	}
	return false
}

// Learn implements crawl.Renderer. Only a page's first render tells what a
// render of such a page gains: at the next its addresses are known.
func (c *Chooser) Learn(f *crawl.Fetched, r *crawl.Rendered, urls int) {
	names, ok := f.Tag.(tag)
	if !ok { // a rule decided
		return
	}
	if r == nil || f.Before.Rendered {
		c.tallies.releaseRender(names.template)
		return
	}
	gained := urls > 0 || (!c.rules.LinksOnly && textGained(f.Page.Length, f.Page.Length+c.known.newText(names.template, r.Page.Text, extract.HTML(f.Answer.Body, f.Answer.Header.Get("Content-Type"), f.URL, extract.Options{}).Text)))
	for _, name := range []string{names.class, names.template} {
		_ = c.tallies.learnRender(context.Background(), name, gained, urls) // what is not learned is learned from the next
	}
}

// Relearn implements crawl.Renderer.
func (c *Chooser) Relearn(host string) { _ = c.tallies.resetHost(context.Background(), host) }

// templateText remembers word sequences that renders of a template have shown, so that a menu
// that scripts add to every page counts once.
type templateText struct {
	mu    sync.Mutex
	shown map[string]map[uint64]bool
}

// Bounds of templateText: words of a sequence, sequences of a template, templates.
const (
	sequenceWords    = 4
	maxSequences     = 4096
	maxTextTemplates = 128
)

// newText returns about how many bytes of a rendered text are neither in the fetched one nor
// shown by an earlier render of the template, and remembers them.
func (k *templateText) newText(template, rendered, fetched string) (n int) {
	own := map[uint64]bool{}
	for h := range wordSequences(fetched) {
		own[h] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	shown := k.shown[template]
	if shown == nil {
		if k.shown == nil || len(k.shown) >= maxTextTemplates {
			k.shown = map[string]map[uint64]bool{}
		}
		shown = map[uint64]bool{}
		k.shown[template] = shown
	}
	for key, word := range wordSequences(rendered) {
		if own[key] || shown[key] {
			continue
		}
		n += len(word) + 1
		if len(shown) < maxSequences {
			shown[key] = true
		}
	}
	return n
}

// wordSequences yields the hash of each sequence of words, with its first word.
func wordSequences(text string) iter.Seq2[uint64, string] {
	words := strings.Fields(text)
	return func(yield func(uint64, string) bool) {
		for i, word := range words {
			h := fnv.New64a()
			for _, w := range words[i:min(i+sequenceWords, len(words))] {
				_, _ = h.Write([]byte(w + " "))
			}
			if !yield(h.Sum64(), word) {
				return
			}
		}
	}
}

// textGained reports whether a page has considerably more text than before.
func textGained(before, after int) bool {
	return float64(after-before) >= math.Max(100, .3*float64(before))
}
