// Package index finds documents by their text.
//
// A document is a web page or a file described by words; an Engine keeps
// documents and answers queries of package query, ranked by
//
//	score = text x (1 + PopularityWeight popularity) x freshness
//	freshness = 1 - FreshnessWeight (1 - 2^(-age/HalfLife))
//
// The text score is BM25 over the words of title, URL and body, a word of the
// title counting more; how much is the engine's to say. Popularity in [0,1] comes
// from the links, age is the time since the last change that a robot saw.
// Documents with the same content are one result with copies.
//
// Two engines stand behind the interface: index/engine (segments in the data
// directory) and PostgreSQL's text search; index/indextest is the suite that both
// must pass. Writing goes through package feed, which follows the feed of the
// store: the engine makes the feed's cursor durable together with the documents,
// so index and store agree after a crash.
package index

import (
	"context"
	"math"
	"time"

	"github.com/freshet/freshet/index/query"
)

// Document is what is indexed of a page or file. ID is its URL and unique.
type Document struct {
	ID         string
	Kind       string // "web", or for files "file", "audio", "video", ...
	Type       string // short content type: html, pdf, text, image, ...
	Host       string
	Lang       string // ISO 639-1; decides the stemmer
	Title      string
	Body       string
	Date       time.Time // last change seen
	Size       int64     // bytes
	Popularity float64   // in [0,1]
	Same       string    // digest of the content; equal digests are copies; "" is alone
}

// Batch is an atomic change of the index: documents put replace those with the
// same ID; a document deleted need not exist. Cursor, if not empty, is what
// Engine.Cursor returns from then on.
type Batch struct {
	Put    []Document
	Delete []string
	Cursor []byte
	// Versions are those of the pages (store.Page.Version) that documents were made of or
	// removed for, by ID. An engine to which many processes write leaves out what is
	// older than what was written or removed before; documents without a version are
	// always written. An engine of one process needs none.
	Versions map[string]int64
}

// Request is one page of results asked for.
type Request struct {
	Query   query.Node
	Kind    string // "" for all, else only this kind
	Limit   int    // results, at most MaxLimit
	Offset  int    // results to skip, at most MaxOffset
	Now     time.Time
	Ranking Ranking
	Facets  bool // count hosts, types, languages, kinds
	ByDate  bool // newest first instead of by score
}

// Bounds of a request: deeper pages of results cost memory in every engine.
const (
	MaxLimit  = 100
	MaxOffset = 1000
	// FacetSize is how many values of a facet are counted.
	FacetSize = 20
)

// Bounded is the request as engines answer it: within its bounds, with a
// ranking, and with Kind as a part of the query.
func (r Request) Bounded() Request {
	r.Limit = min(max(r.Limit, 0), MaxLimit)
	r.Offset = min(max(r.Offset, 0), MaxOffset)
	if r.Ranking == (Ranking{}) {
		r.Ranking = DefaultRanking
	}
	if r.Kind != "" {
		r.Query = query.And{r.Query, query.Filter{Field: "kind", Value: r.Kind}}
	}
	return r
}

// Bounds of PostgreSQL's text search.
const (
	// TitleWeight is how often a word of the title counts.
	TitleWeight = 3
	// RerankDepth is how many documents, best by text alone, popularity and age
	// reorder; deeper pages extend it.
	RerankDepth = 400
	// MaxFaceted is how many matches facets are counted of: counting the values of
	// a common word's matches would take longer than finding them.
	MaxFaceted = 10_000
)

// Ranking are the weights of the score. The zero value means DefaultRanking.
type Ranking struct {
	PopularityWeight float64
	FreshnessWeight  float64 // in [0,1]
	HalfLife         time.Duration
}

// DefaultRanking is what serve uses unless told otherwise.
var DefaultRanking = Ranking{PopularityWeight: 1, FreshnessWeight: .3, HalfLife: 90 * 24 * time.Hour}

// Boost returns the factor that popularity and age (seconds, negative counts
// as zero) put on a text score.
func (r Ranking) Boost(popularity, age float64) float64 {
	fresh := math.Exp2(-max(0, age) / r.HalfLife.Seconds())
	return (1 + r.PopularityWeight*popularity) * (1 - r.FreshnessWeight*(1-fresh))
}

// Results is one page of results.
type Results struct {
	Total     int  // documents that match, copies included
	Estimated bool // Total is a projection: not every document was looked at
	Hits      []Hit
	Facets    map[string][]Count // by field: host, type, lang, kind; most frequent first; none for more matches than the engine counts
	Elapsed   time.Duration
}

// Count is one value of a facet.
type Count struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// Hit is one result.
type Hit struct {
	Document         // Body is left out
	Score    float64 // not comparable between queries
	Snippet  Snippet
	Copies   []string // IDs of documents with the same content
}

// Popular is what popularity a document has from now on.
type Popular struct {
	ID         string
	Popularity float64 // in [0,1]
}

// Stats tells what an engine holds.
type Stats struct {
	Documents uint64
	DiskBytes uint64
}

// Engine keeps documents and finds them.
type Engine interface {
	// Apply makes the whole batch visible to searches that start after it returns,
	// or nothing of it. It is durable once Cursor returns its cursor or a later one,
	// which may be some seconds later, and after Close. One Apply runs at a time.
	Apply(ctx context.Context, b Batch) error
	// Cursor returns the cursor of the last durable batch that had one, nil for a
	// new index: what came after it is lost in a crash. To the engine it is bytes; package feed keeps in it which store the
	// index belongs to and up to which change it has followed that store.
	Cursor(ctx context.Context) ([]byte, error)
	// Search answers a request. It may run beside Apply and other searches; it
	// honours ctx's deadline.
	Search(ctx context.Context, r Request) (*Results, error)
	// Document returns what is stored of a document with its Body, or
	// ErrNotFound.
	Document(ctx context.Context, id string) (*Document, error)
	// IDs calls f with the ID of every document, in any order, until f fails; a
	// document that is written or removed meanwhile may be among them or not. f may
	// call Apply. An index that is brought in step with another store is searched by
	// it for documents that this store does not know.
	IDs(ctx context.Context, f func(id string) error) error
	// Stats counts documents and bytes.
	Stats(ctx context.Context) (Stats, error)
	// Close ends the engine; searches under way finish first.
	Close() error
}

// notFound is the type of ErrNotFound.
type notFound struct{}

func (notFound) Error() string { return "no such document in the index" }

// ErrNotFound is what Engine.Document returns for an unknown ID.
var ErrNotFound error = notFound{}
