// Package dump keeps a copy of a store in one file: JSON lines, each a record
// under the name of its kind, packed by Zstandard. It does not depend on the
// engine, so that what was saved from one is restored into another.
//
// The last line counts the records before it: a file that was cut off is an
// error, not a smaller store.
package dump

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// format is in the first line; another is refused.
const format = 1

// line is a line of the file: one field is set.
type line struct {
	Freshet int              `json:"freshet,omitempty"` // the format
	Time    time.Time        `json:"time,omitzero"`
	Host    *store.Host      `json:"host,omitempty"`
	Page    *store.Page      `json:"page,omitempty"`
	Links   *store.PageLinks `json:"links,omitempty"`
	Visit   *store.VisitLog  `json:"visit,omitempty"`
	Setting *store.Setting   `json:"setting,omitempty"`
	End     *store.Copied    `json:"end,omitempty"`
}

// Writer implements store.Target on a stream.
type Writer struct {
	zip *zstd.Encoder
	buf *bufio.Writer
	enc *json.Encoder
	n   store.Copied
}

var _ store.Target = (*Writer)(nil)

// NewWriter begins a file.
func NewWriter(w io.Writer, now time.Time) (*Writer, error) {
	zip, err := zstd.NewWriter(w)
	if err != nil {
		return nil, fmt.Errorf("dump: %w", err)
	}
	d := &Writer{zip: zip, buf: bufio.NewWriterSize(zip, 256<<10)}
	d.enc = json.NewEncoder(d.buf)
	d.enc.SetEscapeHTML(false)
	return d, d.writeDumpLine(line{Freshet: format, Time: now.UTC()})
}

func (d *Writer) writeDumpLine(l line) error {
	if err := d.enc.Encode(&l); err != nil {
		return fmt.Errorf("dump: %w", err)
	}
	return nil
}

// Load implements store.Target.
func (d *Writer) Load(_ context.Context, p *store.Part) error {
	var errs []error
	for i := range p.Hosts {
		errs = append(errs, d.writeDumpLine(line{Host: &p.Hosts[i]}))
	}
	for i := range p.Pages {
		errs = append(errs, d.writeDumpLine(line{Page: &p.Pages[i]}))
	}
	for i := range p.Links {
		errs = append(errs, d.writeDumpLine(line{Links: &p.Links[i]}))
	}
	for i := range p.Visits {
		errs = append(errs, d.writeDumpLine(line{Visit: &p.Visits[i]}))
	}
	for i := range p.Settings {
		errs = append(errs, d.writeDumpLine(line{Setting: &p.Settings[i]}))
	}
	d.n.Hosts += int64(len(p.Hosts))
	d.n.Pages += int64(len(p.Pages))
	d.n.Links += int64(len(p.Links))
	d.n.Visits += int64(len(p.Visits))
	d.n.Settings += int64(len(p.Settings))
	return errors.Join(errs...)
}

// Loaded implements store.Target: it ends the file.
func (d *Writer) Loaded(context.Context) error {
	err := errors.Join(d.writeDumpLine(line{End: &d.n}), d.buf.Flush(), d.zip.Close())
	if err != nil {
		return fmt.Errorf("dump: %w", err)
	}
	return nil
}

// ErrCut is the error of a file without its end.
var ErrCut = errors.New("the file is cut off")

// maxMemory bounds what a packed file may ask for.
const maxMemory = 64 << 20

// Restore reads a file into a target and returns what was taken of it. A target into which
// that was not finished can be opened by nothing but another try at an empty place.
func Restore(ctx context.Context, r io.Reader, to store.Target, progress func(store.Copied)) (n store.Copied, err error) {
	zip, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(maxMemory), zstd.WithDecoderMaxWindow(32<<20))
	if err != nil {
		return n, fmt.Errorf("dump: %w", err)
	}
	defer zip.Close()
	dec := json.NewDecoder(bufio.NewReaderSize(zip, 256<<10))
	var head line
	if err := dec.Decode(&head); err != nil {
		return n, fmt.Errorf("dump: line 1: %w", asTruncated(err))
	}
	if head.Freshet != format {
		return n, fmt.Errorf("dump: line 1: %w: format %d, this program reads %d", store.ErrVersion, head.Freshet, format)
	}
	var p store.Part
	var read store.Copied // all that the file has; n is what of it was taken
	size := 0
	flush := func() error {
		if size == 0 {
			return nil
		}
		err := to.Load(ctx, &p)
		p, size = store.Part{}, 0
		if progress != nil {
			progress(n)
		}
		return err
	}
	for number := int64(2); number < math.MaxInt64; number++ {
		var l line
		if err := dec.Decode(&l); err != nil {
			return n, fmt.Errorf("dump: line %d: %w", number, asTruncated(err))
		}
		if l.End != nil {
			if *l.End != read {
				return n, fmt.Errorf("dump: line %d: it counts %+v, but there were %+v", number, *l.End, read)
			}
			break
		}
		l.countCopied(&read)
		if !l.isUsable() { // such as what an earlier program stored under the key of another URL
			n.LeftOut++
			continue
		}
		if err := addToPart(&p, &l); err != nil {
			return n, fmt.Errorf("dump: line %d: %w", number, err)
		}
		l.countCopied(&n)
		if size++; size >= 1000 {
			if err := flush(); err != nil {
				return n, err
			}
		}
	}
	if err := flush(); err != nil {
		return n, err
	}
	return n, to.Loaded(ctx)
}

func asTruncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}

// isUsable reports whether a page or visit has a URL in standard form, which names it, and a
// page a record that engines take. One that has not is left out, and costs no backup.
func (l *line) isUsable() bool {
	url := ""
	switch {
	case l.Page != nil:
		url = l.Page.URL
	case l.Visit != nil:
		url = l.Visit.URL
	default:
		return true
	}
	u, err := weburl.Parse(url)
	if err != nil || u.String() != url {
		return false
	}
	if l.Page != nil {
		l.Page.Key = u.Key()
		return l.Page.Check() == nil
	}
	return true
}

// countCopied counts a line.
func (l *line) countCopied(n *store.Copied) {
	switch {
	case l.Host != nil:
		n.Hosts++
	case l.Page != nil:
		n.Pages++
	case l.Links != nil:
		n.Links++
	case l.Visit != nil:
		n.Visits++
	case l.Setting != nil:
		n.Settings++
	}
}

// addToPart takes a line into a part, after a look at what would do harm later.
func addToPart(p *store.Part, l *line) error {
	switch {
	case l.Host != nil:
		if l.Host.Name == "" {
			return errors.New("a host without name")
		}
		l.Host.AddReason()
		p.Hosts = append(p.Hosts, *l.Host)
	case l.Page != nil:
		l.Page.AddReason()
		p.Pages = append(p.Pages, *l.Page)
	case l.Links != nil:
		p.Links = append(p.Links, *l.Links)
	case l.Visit != nil:
		p.Visits = append(p.Visits, *l.Visit)
	case l.Setting != nil:
		if l.Setting.Name == "" {
			return errors.New("a setting without name")
		}
		p.Settings = append(p.Settings, *l.Setting)
	default:
		return errors.New("nothing that is known")
	}
	return nil
}
