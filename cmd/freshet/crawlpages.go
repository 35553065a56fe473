package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/freshet/freshet/crawl"
)

// pageWriter writes --out.
type pageWriter struct {
	mu  sync.Mutex
	f   *os.File
	buf *bufio.Writer
	enc *json.Encoder
	err error
}

func newPageWriter(path string) (*pageWriter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	w := &pageWriter{f: f, buf: bufio.NewWriter(f)}
	w.enc = json.NewEncoder(w.buf)
	w.enc.SetEscapeHTML(false)
	return w, nil
}

// pageLine is one line of --out.
type pageLine struct {
	URL         string    `json:"url"`
	FinalURL    string    `json:"final_url"`
	Status      int       `json:"status"`
	ContentType string    `json:"content_type"`
	Bytes       int64     `json:"bytes"`
	Title       string    `json:"title"`
	Lang        string    `json:"lang"`
	Depth       int       `json:"depth"`
	From        string    `json:"from"`
	FetchedAt   time.Time `json:"fetched_at"`
	Rendered    bool      `json:"rendered"`
	Digest      string    `json:"digest"`
	Links       []string  `json:"links"`
}

func (w *pageWriter) writePageLine(r *crawl.Result) {
	p := &r.Page
	l := pageLine{
		URL: p.URL, FinalURL: r.FinalURL, Status: p.Status, ContentType: p.Type, Bytes: p.Bytes, Title: p.Title, Lang: p.Lang, Depth: p.Depth,
		From: p.From, FetchedAt: r.Fetched.UTC(), Rendered: p.Rendered, Digest: fmt.Sprintf("%x", p.Digest), Links: []string{},
	}
	for _, link := range r.Links {
		l.Links = append(l.Links, link.URL.String())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enc.Encode(&l); err != nil && w.err == nil {
		w.err = err
	}
}

func (w *pageWriter) closePages() error {
	err := errors.Join(w.err, w.buf.Flush(), w.f.Close())
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
