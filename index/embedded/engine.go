// Package embedded is the text engine for one machine: Bleve's inverted index
// in a folder of the data directory, written in the same process.
//
// Words come from index/analysis, not from Bleve's analysers: the field "text"
// holds each folded word of title (index.TitleWeight times), URL and body and,
// at the same position, its stem in the document's language; "title" and
// "name" hold their words again for queries on them alone. A query word is
// looked for as itself and as its stem in each configured language. Popularity
// and date stand at the head of the one stored field, so that reordering the
// best hits reads no doc values: those cost 2 us a hit.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/blevesearch/bleve/v2"
	banalysis "github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/mapping"
	bindex "github.com/blevesearch/bleve_index_api"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/analysis"
)

// formatVersion is written beside the index; another version is not opened.
const formatVersion = 1

// Config are the engine's options. The zero value is usable.
type Config struct {
	// Languages are tried as the language of every query word. Default en, ru, lt.
	Languages []string
}

// Engine is an index.Engine over Bleve.
type Engine struct {
	dir       string
	bleve     bleve.Index
	languages []string

	apply  sync.Mutex // one batch at a time: cursors must not go back
	broken error      // why nothing can be written any more
}

// ErrLocked is the error of Open when another process has the index open.
var ErrLocked = errors.New("in use by another process")

// Open opens the index in dir, or makes a new one.
func Open(dir string, c Config) (*Engine, error) {
	if len(c.Languages) == 0 {
		c.Languages = []string{"en", "ru", "lt"}
	}
	e := &Engine{dir: dir, languages: c.Languages}
	if _, err := os.Stat(filepath.Join(dir, "index_meta.json")); errors.Is(err, fs.ErrNotExist) {
		if err := create(dir); err != nil {
			return nil, fmt.Errorf("make index %s: %w", dir, err)
		}
	}
	var err error
	e.bleve, err = openWhole(dir)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "timeout"):
		return nil, fmt.Errorf("index %s: %w", dir, ErrLocked)
	default:
		return nil, fmt.Errorf("index %s: %w; if the folder is damaged, remove it: it is built again from the store", dir, err)
	}
	if err := e.checkVersion(); err != nil {
		return nil, errors.Join(fmt.Errorf("index %s: %w", dir, err), e.bleve.Close())
	}
	return e, nil
}

// openWhole opens an index. Its libraries panic where they find parts of it damaged.
func openWhole(dir string) (i bleve.Index, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged: %v", p)
		}
	}()
	return bleve.OpenUsing(dir, settings())
}

var versionKey, cursorKey = []byte("freshet-version"), []byte("freshet-cursor")

// create makes an empty index beside dir and gives it its name when it is whole,
// so that a crash leaves nothing that looks like an index and is none.
func create(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	unfinished := dir + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	b, err := bleve.NewUsing(unfinished, fields(), bleve.Config.DefaultIndexType, bleve.Config.DefaultKVStore, settings())
	if err != nil {
		return err
	}
	if err := errors.Join(b.SetInternal(versionKey, []byte{formatVersion}), b.Close()); err != nil {
		return err
	}
	return os.Rename(unfinished, dir)
}

// settings of Bleve's store: how long it waits for the lock of another process.
func settings() map[string]any { return map[string]any{"bolt_timeout": "2s"} }

func (e *Engine) checkVersion() error {
	v, err := e.bleve.GetInternal(versionKey)
	if err != nil {
		return err
	}
	if len(v) != 1 || v[0] != formatVersion {
		return fmt.Errorf("has format %d, this program reads format %d: remove the folder, it is built again from the store", v, formatVersion)
	}
	return nil
}

// fields is the mapping: BM25, and which fields are numbers, so that doc
// values decode as such. Documents bring their own fields and analysers.
func fields() *mapping.IndexMappingImpl {
	m := bleve.NewIndexMapping()
	m.ScoringModel = bindex.BM25Scoring
	m.DefaultMapping.Dynamic = false
	for _, name := range []string{"date", "size"} {
		m.DefaultMapping.AddFieldMappingsAt(name, mapping.NewNumericFieldMapping())
	}
	for _, name := range []string{"text", "title", "name"} {
		m.DefaultMapping.AddFieldMappingsAt(name, mapping.NewTextFieldMapping())
	}
	for _, name := range []string{"host", "hostname", "type", "lang", "kind"} {
		m.DefaultMapping.AddFieldMappingsAt(name, mapping.NewKeywordFieldMapping())
	}
	return m
}

// Apply implements index.Engine.
func (e *Engine) Apply(ctx context.Context, b index.Batch) (err error) {
	e.apply.Lock()
	defer e.apply.Unlock()
	if err := errors.Join(ctx.Err(), e.broken); err != nil {
		return err
	}
	// Bleve panics in its own bookkeeping after a write that failed, such as on a
	// full disk. The index on disk is whole; this process cannot use it further.
	defer func() {
		if r := recover(); r != nil {
			e.broken = fmt.Errorf("index %s: cannot be written until the next start: %v", e.dir, r)
			err = e.broken
		}
	}()
	batch := e.bleve.NewBatch()
	for _, id := range b.Delete {
		batch.Delete(id)
	}
	for i := range b.Put {
		doc, err := e.document(&b.Put[i])
		if err != nil {
			return fmt.Errorf("index %s: %w", b.Put[i].ID, err)
		}
		if err := batch.IndexAdvanced(doc); err != nil {
			return fmt.Errorf("index %s: %w", b.Put[i].ID, err)
		}
	}
	if len(b.Cursor) > 0 {
		batch.SetInternal(cursorKey, b.Cursor)
	}
	if err := e.bleve.Batch(batch); err != nil {
		return fmt.Errorf("index %s: write %d documents: %w", e.dir, len(b.Put), err)
	}
	return nil
}

const (
	textOptions    = bindex.IndexField | bindex.IncludeTermVectors
	keywordOptions = bindex.IndexField | bindex.DocValues | bindex.SkipFreqNorm
	numberOptions  = bindex.IndexField | bindex.DocValues
)

// document makes Bleve's document: searched fields, doc values for ranking and
// facets, and one stored field with everything that a result shows.
func (e *Engine) document(d *index.Document) (*document.Document, error) {
	if d.ID == "" {
		return nil, errors.New("a document needs an ID")
	}
	doc := document.NewDocument(d.ID)
	text := func(name, value string, part uint64, a banalysis.Analyzer) {
		if value != "" {
			doc.AddField(document.NewTextFieldCustom(name, []uint64{part}, []byte(value), textOptions, a))
		}
	}
	lang := d.Lang
	if lang == "" { // too short to tell: the first language is the likeliest
		lang = e.languages[0]
	}
	a, name := analyzer{analysis.For(lang)}, index.NameOf(d.ID)
	text("title", d.Title, 0, a)
	text("name", name, 0, analyzer{})
	for i := range uint64(index.TitleWeight) {
		text("text", d.Title, i, a)
	}
	text("text", name, index.TitleWeight, analyzer{})
	text("text", d.Body, index.TitleWeight+1, a)
	keyword := func(name string, values ...string) {
		for _, v := range values {
			if v != "" {
				doc.AddField(document.NewTextFieldCustom(name, nil, []byte(v), keywordOptions, whole{}))
			}
		}
	}
	keyword("host", index.Domains(d.Host)...)
	keyword("hostname", d.Host)
	keyword("type", d.Type)
	keyword("lang", d.Lang)
	keyword("kind", d.Kind)
	doc.AddField(document.NewNumericFieldWithIndexingOptions("date", nil, float64(d.Date.Unix()), numberOptions))
	doc.AddField(document.NewNumericFieldWithIndexingOptions("size", nil, float64(d.Size), numberOptions))
	stored, err := encode(d)
	if err != nil {
		return nil, err
	}
	doc.AddField(document.NewTextFieldCustom("stored", nil, stored, bindex.StoreField, whole{}))
	return doc, nil
}

// Cursor implements index.Engine.
func (e *Engine) Cursor(context.Context) ([]byte, error) {
	return e.bleve.GetInternal(cursorKey)
}

// Document implements index.Engine.
func (e *Engine) Document(_ context.Context, id string) (*index.Document, error) {
	var d *index.Document
	err := e.stored(id, func(b []byte) (err error) {
		d, err = decode(b)
		return err
	})
	return d, err
}

// stored calls f with the stored field of a document; the bytes are f's only
// until it returns.
func (e *Engine) stored(id string, f func([]byte) error) error {
	doc, err := e.bleve.Document(id)
	if err != nil {
		return fmt.Errorf("index: document %s: %w", id, err)
	}
	if doc == nil {
		return fmt.Errorf("%s: %w", id, index.ErrNotFound)
	}
	err = errDamaged
	doc.VisitFields(func(field bindex.Field) {
		if field.Name() == "stored" {
			err = f(field.Value())
		}
	})
	if err != nil {
		return fmt.Errorf("index: document %s: %w", id, err)
	}
	return nil
}

// Stats implements index.Engine.
func (e *Engine) Stats(context.Context) (index.Stats, error) {
	n, err := e.bleve.DocCount()
	if err != nil {
		return index.Stats{}, fmt.Errorf("index: count: %w", err)
	}
	s := index.Stats{Documents: n}
	err = filepath.WalkDir(e.dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // merged away meanwhile
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			s.DiskBytes += uint64(info.Size())
		}
		return nil
	})
	return s, err
}

// Close implements index.Engine.
func (e *Engine) Close() error { return e.bleve.Close() }
