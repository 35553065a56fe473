package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/index/feed"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/local"
	"github.com/freshet/freshet/store/postgres"
	"github.com/freshet/freshet/weburl"
)

// exportCmd writes what the data directory holds for other programs.
type exportCmd struct {
	What     string        `arg:"" enum:"pages,links,files,changes,requests,services" help:"pages (records of URLs), links (from, to), files (of shares), changes (log of visits), requests (arrivals at the indexing queue) or services (how long the indexer worked on each)."`
	Format   string        `help:"jsonl, csv or parquet." enum:"jsonl,csv,parquet" default:"jsonl"`
	Out      string        `help:"File to write instead of standard output." short:"o" type:"path" placeholder:"FILE"`
	Database string        `help:"postgres://... to read pages, links, changes and requests from instead of the data directory." placeholder:"URL" env:"FRESHET_DATABASE"`
	Since    time.Duration `help:"Only visits of so long ago or later (changes, requests, services)." placeholder:"DURATION"`
}

// pageRow is a line of export pages.
type pageRow struct {
	URL          string    `json:"url" parquet:"url"`
	State        string    `json:"state" parquet:"state,dict"`
	Depth        int       `json:"depth" parquet:"depth"`
	From         string    `json:"from" parquet:"from"`
	Status       int       `json:"status" parquet:"status"`
	ContentType  string    `json:"content_type" parquet:"content_type,dict"`
	ETag         string    `json:"etag" parquet:"etag"`
	LastModified string    `json:"last_modified" parquet:"last_modified"`
	Location     string    `json:"location" parquet:"location"`
	Canonical    string    `json:"canonical" parquet:"canonical"`
	Title        string    `json:"title" parquet:"title"`
	Lang         string    `json:"lang" parquet:"lang,dict"`
	Bytes        int64     `json:"bytes" parquet:"bytes"`
	Digest       string    `json:"digest" parquet:"digest"`
	Simhash      string    `json:"simhash" parquet:"simhash"`
	NoIndex      bool      `json:"noindex" parquet:"noindex"`
	Rendered     bool      `json:"rendered" parquet:"rendered"`
	Error        string    `json:"error" parquet:"error"`
	Failures     int       `json:"failures" parquet:"failures"`
	Visited      time.Time `json:"visited,omitzero" parquet:"visited,optional,timestamp(microsecond)"`
	Changed      time.Time `json:"changed,omitzero" parquet:"changed,optional,timestamp(microsecond)"`
	Due          time.Time `json:"due,omitzero" parquet:"due,optional,timestamp(microsecond)"`
	ChangesADay  float64   `json:"changes_a_day" parquet:"changes_a_day"`
	WARC         string    `json:"warc_file" parquet:"warc_file,dict"`
	Offset       int64     `json:"warc_offset" parquet:"warc_offset"`
}

// linkRow is a line of export links.
type linkRow struct {
	From string `json:"from" parquet:"from,dict"`
	To   string `json:"to" parquet:"to,dict"`
}

// fileRow is a line of export files.
type fileRow struct {
	Host     string    `json:"host" parquet:"host,dict"`
	Path     string    `json:"path" parquet:"path"`
	URL      string    `json:"url" parquet:"url"`
	Kind     string    `json:"kind" parquet:"kind,dict"`
	Size     int64     `json:"size" parquet:"size"`
	Modified time.Time `json:"modified,omitzero" parquet:"modified,optional,timestamp(microsecond)"`
	Seen     time.Time `json:"seen,omitzero" parquet:"seen,optional,timestamp(microsecond)"`
	Title    string    `json:"title" parquet:"title"`
	Artist   string    `json:"artist" parquet:"artist"`
	Album    string    `json:"album" parquet:"album"`
	Genre    string    `json:"genre" parquet:"genre,dict"`
	Year     int       `json:"year" parquet:"year"`
	Seconds  float64   `json:"seconds" parquet:"seconds"`
	Width    int       `json:"width" parquet:"width"`
	Height   int       `json:"height" parquet:"height"`
}

// changeRow is a line of export changes.
type changeRow struct {
	URL     string    `json:"url" parquet:"url,dict"`
	Time    time.Time `json:"time" parquet:"time"`
	Changed bool      `json:"changed" parquet:"changed"`
	Status  int       `json:"status" parquet:"status"`
	Bytes   int64     `json:"bytes" parquet:"bytes"`
	Seconds float64   `json:"seconds" parquet:"seconds"` // of the request
}

// requestRow is a line of export requests: the input of control fit.
type requestRow struct {
	Time  float64 `json:"time" parquet:"time"` // seconds since 1970
	Bytes int64   `json:"bytes" parquet:"bytes"`
	URL   string  `json:"url" parquet:"url,dict"`
}

// serviceRow is a line of export services: how long the indexer took.
type serviceRow struct {
	Time    float64 `json:"time" parquet:"time"` // of its end, seconds since 1970
	Seconds float64 `json:"seconds" parquet:"seconds"`
	Bytes   int64   `json:"bytes" parquet:"bytes"`
	URL     string  `json:"url" parquet:"url,dict"`
	Arrived float64 `json:"arrived" parquet:"arrived"` // when it was fetched; negative if not known
}

// Run writes the table.
func (c *exportCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	if c.Format == "parquet" && c.Out == "" {
		return command.Usagef("export: parquet is no text: give --out FILE")
	}
	out, finish, err := c.openOutput(g)
	if err != nil {
		return err
	}
	defer func() { err = finish(err) }()
	if c.What == "files" {
		return c.exportShareFiles(ctx, g, out)
	}
	var since time.Time
	if c.Since > 0 {
		since = time.Now().Add(-c.Since)
	}
	if c.What == "services" {
		return exportServices(g, since, newTable[serviceRow](c.Format, out))
	}
	s, err := c.openPageStore(g)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	switch c.What {
	case "pages":
		return exportPages(ctx, s, newTable[pageRow](c.Format, out))
	case "links":
		return exportLinks(ctx, s, newTable[linkRow](c.Format, out))
	}
	if c.What == "changes" {
		return exportChanges(ctx, s, since, newTable[changeRow](c.Format, out))
	}
	return exportRequests(ctx, s, since, newTable[requestRow](c.Format, out))
}

// openPageStore opens the web robot's store; exporting makes none.
func (c *exportCmd) openPageStore(g *command.Globals) (store.Store, error) {
	if c.Database != "" {
		return postgres.Open(context.Background(), c.Database, postgres.Config{Connections: 2})
	}
	dir, err := g.DataDir()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "store")
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("export %s: nothing was crawled into this data directory: %w", c.What, err)
	}
	return local.Open(dir, local.Config{})
}

// openOutput returns where to write. A file takes its name when all is written, so
// that a failed export leaves the old one.
func (c *exportCmd) openOutput(g *command.Globals) (io.Writer, func(error) error, error) {
	if c.Out == "" {
		buf := bufio.NewWriterSize(g.Stdout, 64<<10)
		return buf, func(err error) error { return errors.Join(err, buf.Flush()) }, nil
	}
	f, err := os.CreateTemp(filepath.Dir(c.Out), filepath.Base(c.Out)+".*.part")
	if err != nil {
		return nil, nil, fmt.Errorf("export: %w", err)
	}
	buf := bufio.NewWriterSize(f, 256<<10)
	return buf, func(err error) error {
		err = errors.Join(err, buf.Flush(), f.Close())
		if err == nil {
			err = os.Rename(f.Name(), c.Out)
		}
		if err != nil {
			_ = os.Remove(f.Name())
		}
		return err
	}, nil
}

func exportPages(ctx context.Context, s store.Store, t table[pageRow]) error {
	err := s.Pages(ctx, func(p *store.Page) error {
		row := pageRow{
			URL: p.URL, State: string(p.State), Depth: p.Depth, From: p.From, Status: p.Status, ContentType: p.Type, ETag: p.ETag, LastModified: p.LastModified,
			Location: p.Location, Canonical: p.Canonical, Title: p.Title, Lang: p.Lang, Bytes: p.Bytes, NoIndex: p.NoIndex, Rendered: p.Rendered,
			Error: p.Error, Failures: p.Failures, Visited: p.History.Last, Changed: p.History.Changed, Due: p.Slot.Due, WARC: p.Body.File, Offset: p.Body.Offset,
		}
		if p.Digest != [16]byte{} {
			row.Digest = hex.EncodeToString(p.Digest[:])
			row.Simhash = fmt.Sprintf("%016x", p.Simhash)
		}
		if p.State != store.Queued {
			row.ChangesADay = p.History.Rate(change.DefaultPrior) * 86400
		}
		return t.writeRow(&row)
	})
	return errors.Join(err, t.closeTable())
}

// exportLinks writes the links between known pages. Links to pages that were
// never queued (other hosts, excluded) have no URL in the store.
func exportLinks(ctx context.Context, s store.Store, t table[linkRow]) error {
	names := map[weburl.Key]string{}
	// ask learns the names of keys that are not known, all at once.
	ask := func(keys []weburl.Key) error {
		keys = slices.DeleteFunc(keys, func(k weburl.Key) bool { _, ok := names[k]; return ok })
		if len(keys) == 0 {
			return nil
		}
		pages, err := s.Records(ctx, keys)
		for _, k := range keys {
			names[k] = ""
		}
		for i := range pages {
			u, err := weburl.Parse(pages[i].URL)
			if err != nil {
				return err
			}
			names[u.Key()] = pages[i].URL
		}
		return err
	}
	err := s.Links(ctx, func(from weburl.Key, to []weburl.Key) error {
		if len(names) >= 100_000 { // bounded; links are local, so most are found again soon
			clear(names)
		}
		if err := ask(append([]weburl.Key{from}, to...)); err != nil {
			return err
		}
		source := names[from]
		if source == "" {
			return nil
		}
		for _, k := range to {
			if names[k] == "" {
				continue
			}
			if err := t.writeRow(&linkRow{source, names[k]}); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, t.closeTable())
}

func exportChanges(ctx context.Context, s store.Store, since time.Time, t table[changeRow]) error {
	err := s.Visits(ctx, since, func(v *store.VisitLog) error {
		return t.writeRow(&changeRow{v.URL, v.Time, v.Changed, v.Status, v.Bytes, v.Took.Seconds()})
	})
	return errors.Join(err, t.closeTable())
}

// exportRequests writes the visits that brought the indexer work.
func exportRequests(ctx context.Context, s store.Store, since time.Time, t table[requestRow]) error {
	err := s.Visits(ctx, since, func(v *store.VisitLog) error {
		if !v.Changed {
			return nil
		}
		return t.writeRow(&requestRow{float64(v.Time.UnixMicro()) / 1e6, v.Bytes, v.URL})
	})
	return errors.Join(err, t.closeTable())
}

// exportServices needs no store: a running serve may go on.
func exportServices(g *command.Globals, since time.Time, t table[serviceRow]) error {
	dir, err := g.DataDir()
	if err != nil {
		return err
	}
	err = feed.ReadServices(dir, func(s *feed.Service) error {
		if s.Time.Before(since) {
			return nil
		}
		return t.writeRow(&serviceRow{float64(s.Time.UnixMicro()) / 1e6, s.Seconds, s.Bytes, s.URL, float64(s.Arrived.UnixMicro()) / 1e6})
	})
	return errors.Join(err, t.closeTable())
}

func (c *exportCmd) exportShareFiles(ctx context.Context, g *command.Globals, out io.Writer) error {
	dir, err := g.DataDir()
	if err != nil {
		return err
	}
	s, err := app.OpenShareStore(dir)
	if err != nil {
		return err
	}
	t := newTable[fileRow](c.Format, out)
	hosts, err := s.Hosts(ctx)
	for _, h := range hosts {
		if err != nil {
			break
		}
		err = s.Files(ctx, h.Name, "", "", func(_ string, f *share.File) error {
			m := f.Media
			return t.writeRow(&fileRow{
				Host: f.Host, Path: f.Path, URL: f.URL(), Kind: string(media.KindOf(f.Name())), Size: f.Size, Modified: unixTime(f.Modified), Seen: unixTime(f.Seen),
				Title: m.Title, Artist: m.Artist, Album: m.Album, Genre: m.Genre, Year: m.Year, Seconds: m.Duration.Seconds(), Width: m.Width, Height: m.Height,
			})
		})
	}
	return errors.Join(err, t.closeTable(), s.Close())
}

// unixTime is the time of seconds since 1970; 0 is unknown.
func unixTime(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0).UTC()
}
