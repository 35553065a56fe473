package render

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/freshet/freshet/weburl"
)

// A Tally is what renders of alike pages gained.
type Tally struct {
	Seen   int64 `json:"s"` // pages
	Tried  int64 `json:"n"` // of them rendered for the first time
	Gained int64 `json:"g"` // of those that gained something
	URLs   int64 `json:"u"` // new addresses in all
}

// class is what the features of a page say before anything was rendered: with
// which probability rendering gains, as a Beta distribution.
type class struct {
	name string
	a, b float64 // prior: a gains in a+b renders
}

// classes by name. The priors are weak: a handful of renders of one class, on
// whatever host, outweigh them.
var classes = map[string]class{
	"empty":    {"empty", 3, 1},       // an app and nearly no text or links of its own
	"few":      {"few", 1.5, 1.5},     // an app on a page with fewer links than its host has
	"sparse":   {"sparse", 1.5, 1.5},  // a script that builds, on a page without links
	"app":      {"app", 1, 2},         // an app beside text and links
	"noscript": {"noscript", 3, 1},    // the page says that it needs JavaScript
	"builds":   {"builds", .5, 3},     // a script that builds, without data of its own
	"blank":    {"blank", 1, 1},       // nearly nothing, and scripts that look inert
	"hydrated": {"hydrated", .05, 4},  // the server rendered it; scripts only revive it
	"inert":    {"inert", .02, 4},     // scripts that count visitors and the like
	"static":   {"static", .001, 100}, // no scripts at all
}

// templateStrength is how many renders of a template the class's mean is worth.
const templateStrength = 2

// classMean is the posterior mean of a class.
func (c class) classMean(t Tally) float64 {
	return (c.a + float64(t.Gained)) / (c.a + c.b + float64(t.Tried))
}

// gainProbability is the probability that rendering one more page of a template gains
// something: Beta-Bernoulli, with the class's mean as the template's prior.
func gainProbability(c class, ofClass, ofTemplate Tally) float64 {
	return (templateStrength*c.classMean(ofClass) + float64(ofTemplate.Gained)) / (templateStrength + float64(ofTemplate.Tried))
}

// templateOf names what pages have in common that are likely built alike: host,
// the shape of their path, and their scripts.
func templateOf(u weburl.URL, scripts []string) string {
	h := fnv.New64a()
	names := make([]string, 0, len(scripts))
	for _, s := range scripts {
		s, _, _ = strings.Cut(s, "?")
		names = append(names, s)
	}
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		_, _ = h.Write([]byte(n))
	}
	return fmt.Sprintf("%s%s %08x", u.Host(), pathShape(u.Target()), uint32(h.Sum64()))
}

// pathShape generalises a path: the first segment stands, those after it only
// count, numbers are all alike, and parameters keep their names.
func pathShape(target string) string {
	path, query, _ := strings.Cut(target, "?")
	var b strings.Builder
	for i, seg := range strings.Split(strings.Trim(path, "/"), "/") {
		b.WriteByte('/')
		switch {
		case seg == "":
		case strings.ContainsAny(seg, "0123456789"):
			b.WriteByte('#')
		case i == 0 && strings.Contains(path[1:], "/"):
			b.WriteString(seg)
		default:
			b.WriteByte('*')
		}
	}
	if query != "" {
		var keys []string
		for kv := range strings.SplitSeq(query, "&") {
			k, _, _ := strings.Cut(kv, "=")
			keys = append(keys, k)
		}
		slices.Sort(keys)
		b.WriteString("?" + strings.Join(slices.Compact(keys), "&"))
	}
	return b.String()
}

// tallies keeps tallies by name in the keeper, those used lately in memory.
type tallies struct {
	keep Keeper

	mu   sync.Mutex
	of   map[string]*line
	host map[string]*links
}

// line is a tally and the renders under way.
type line struct {
	Tally
	away int
	owed int // renders that explore has asked for
}

// links is the mean number of links of a host's pages.
type links struct {
	pages int
	mean  float64
}

const knownTallies = 100_000

func newTallies(k Keeper) *tallies {
	return &tallies{keep: k, of: map[string]*line{}, host: map[string]*links{}}
}

// loadTally returns a line; the caller holds mu.
func (t *tallies) loadTally(ctx context.Context, name string) (*line, error) {
	if l := t.of[name]; l != nil {
		return l, nil
	}
	l := &line{}
	v, err := t.keep.Get(ctx, tallyKey(name))
	if err != nil {
		return nil, err
	}
	if len(v) > 0 && json.Unmarshal(v, &l.Tally) != nil {
		l.Tally = Tally{}
	}
	if len(t.of) >= knownTallies {
		for k, old := range t.of {
			if old.away == 0 {
				delete(t.of, k)
			}
		}
	}
	t.of[name] = l
	return l, nil
}

func tallyKey(name string) string {
	if strings.HasPrefix(name, "class ") {
		return "render/" + name
	}
	return "render/template/" + checksum16([]byte(name))
}

// forget is how much of old evidence remains when more than this many renders
// are counted: sites change, and a template must be able to change its mind.
const forget = 200

// learnRender adds a render's result.
func (t *tallies) learnRender(ctx context.Context, name string, gained bool, urls int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, err := t.loadTally(ctx, name)
	if err != nil {
		return err
	}
	l.away = max(0, l.away-1)
	l.Tried++
	if gained {
		l.Gained++
	}
	l.URLs += int64(urls)
	if l.Tried >= forget {
		l.Tried, l.Gained, l.URLs = l.Tried/2, l.Gained/2, l.URLs/2
	}
	b, err := json.Marshal(l.Tally)
	if err != nil {
		return err
	}
	return t.keep.Put(ctx, tallyKey(name), b)
}

// resetHost forgets what renders of a host's templates in memory have gained, and takes
// it back from nothing else: classes have the evidence of many hosts.
func (t *tallies) resetHost(ctx context.Context, host string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, l := range t.of {
		if !strings.HasPrefix(name, host+"/") || l.Tried == 0 {
			continue
		}
		l.Tried, l.Gained, l.URLs = 0, 0, 0
		b, err := json.Marshal(l.Tally)
		if err == nil {
			err = t.keep.Put(ctx, tallyKey(name), b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// releaseRender takes back a render that tells nothing.
func (t *tallies) releaseRender(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.of[name]; l != nil {
		l.away = max(0, l.away-1)
	}
}

// noteLinkCount tells whether a page has far fewer links than its host's pages mostly have,
// and counts it among them if it is new.
func (t *tallies) noteLinkCount(host string, n int, isNew bool) (few bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.host[host]
	if h == nil {
		if len(t.host) >= knownTallies {
			clear(t.host)
		}
		h = &links{}
		t.host[host] = h
	}
	few = h.pages >= 5 && float64(n) < .3*h.mean
	if !isNew {
		return few
	}
	h.pages++
	h.mean += (float64(n) - h.mean) / math.Min(float64(h.pages), 50)
	return few
}
