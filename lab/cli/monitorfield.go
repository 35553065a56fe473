package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/freshet/freshet/internal/command"

	"github.com/klauspost/compress/gzip"

	"github.com/freshet/freshet/lab/field"
)

type monitorFieldCmd struct {
	fieldFlags `kong:"set='pages=100000',set='units=8640000',set='changes=1',set='requests=1'"`
	Out        string   `help:"Field file to write: .csv or .parquet." short:"o" required:"" type:"path" placeholder:"FILE"`
	From       string   `help:"What the input files are: log (access logs in Common or Combined Log Format, .gz too), visits (of freshet export changes) or field (another field file)." enum:"log,visits,field" default:"log"`
	Sort       bool     `help:"Sort entries that are out of order instead of refusing them."`
	Lenient    bool     `help:"Pass over lines that are none of an access log, and count them."`
	Slack      int64    `help:"Sizes in logs that differ by at most so many bytes are of the same content: for logs that count header fields (Apache's %O, in Debian's combined)." placeholder:"BYTES"`
	Robots     []string `help:"Agents with these words are no visitors; what they saw still tells of changes." default:"bot,crawl,spider,slurp"`
	Length     float64  `help:"Horizon in units after the first entry (default: a second after the last)."`
	Input      []string `arg:"" optional:"" help:"Files to import; without them the field is made from laws." type:"path"`
}

// fieldSummary is the JSON of monitor field.
type fieldSummary struct {
	Pages    int     `json:"pages"`
	Time     float64 `json:"time"` // units
	Changes  int     `json:"changes"`
	Real     int     `json:"real_changes"`
	Requests int     `json:"requests"`
	Small    int     `json:"small_changes"` // of at most 16 bytes
	Skipped  int     `json:"skipped"`       // entries that tell nothing of a resource
	Bad      int     `json:"bad_lines"`     // passed over
}

// Run makes or imports a field.
func (c *monitorFieldCmd) Run(ctx context.Context, g *command.Globals) error {
	format := strings.TrimPrefix(filepath.Ext(c.Out), ".")
	if format != "csv" && format != "parquet" {
		return command.Usagef("monitor field: --out %s ends in neither .csv nor .parquet", c.Out)
	}
	sum := &fieldSummary{}
	f, err := c.makeOrConvert(ctx, sum)
	if errors.Is(err, field.ErrInput) {
		return command.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	if err := writeField(c.Out, format, f); err != nil {
		return err
	}
	sum.countEvents(f)
	if sum.Small > sum.Changes/20 && !g.Quiet {
		fmt.Fprintf(g.Stderr, "freshet: %d of %d changes are of at most %d bytes: if the log counts header fields (Apache's %%O), --slack %d takes them for none\n", sum.Small, sum.Changes, field.Few, field.Few)
	}
	if g.JSON {
		return g.PrintJSON(sum)
	}
	fmt.Fprintf(g.Stdout, "%d resources, %.6g units, %d changes (%d real), %d requests", sum.Pages, sum.Time, sum.Changes, sum.Real, sum.Requests)
	if len(c.Input) > 0 {
		fmt.Fprintf(g.Stdout, "; %d entries told nothing of a resource, %d lines were none of a log", sum.Skipped, sum.Bad)
	}
	fmt.Fprintln(g.Stdout)
	return nil
}

// countEvents reads the field through once.
func (s *fieldSummary) countEvents(f field.Field) {
	s.Pages, s.Time = f.Pages(), f.Horizon()
	changes, requests := f.Changes(), f.Requests()
	cs, qs := make([]field.Change, 1024), make([]field.Request, 1024)
	for n := changes.Read(cs); n > 0; n = changes.Read(cs) {
		s.Changes += n
		for _, c := range cs[:n] {
			if c.Real {
				s.Real++
			}
		}
	}
	for n := requests.Read(qs); n > 0; n = requests.Read(qs) {
		s.Requests += n
	}
}

func (c *monitorFieldCmd) makeOrConvert(ctx context.Context, sum *fieldSummary) (field.Field, error) {
	if c.Slack < 0 {
		return nil, command.Usagef("monitor field: --slack %d is negative", c.Slack)
	}
	if len(c.Input) == 0 {
		return c.makeField()
	}
	if c.From == "field" {
		if len(c.Input) != 1 {
			return nil, command.Usagef("monitor field: one field file at a time")
		}
		return readField(c.Input[0])
	}
	s := &field.Sightings{Sort: c.Sort, Length: c.Length, Seed: c.Seed, Slack: c.Slack}
	for _, name := range c.Input {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if c.From == "visits" {
			err = readVisits(name, s)
		} else {
			err = c.readLog(name, s, sum)
		}
		if err != nil {
			return nil, err
		}
	}
	h, err := s.History()
	if err != nil {
		return nil, err
	}
	sum.Skipped, sum.Small = s.Skipped, s.Small
	return h, nil
}

func (c *monitorFieldCmd) readLog(name string, s *field.Sightings, sum *fieldSummary) error {
	f, err := os.Open(name)
	if err != nil {
		return command.UsageError{Err: err}
	}
	defer f.Close() //nolint:errcheck // read only
	var r io.Reader = bufio.NewReaderSize(f, 256<<10)
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(r)
		if err != nil {
			return command.Usagef("%s: %w", name, err)
		}
		r = z
	}
	_, bad, err := field.ReadLog(r, s, field.LogOptions{Name: name, Lenient: c.Lenient, Robots: c.Robots})
	sum.Bad += bad
	return err
}

// readVisits reads what freshet export changes wrote, by the file's ending.
func readVisits(name string, s *field.Sightings) error {
	f, err := os.Open(name)
	if err != nil {
		return command.UsageError{Err: err}
	}
	defer f.Close() //nolint:errcheck // read only
	switch filepath.Ext(name) {
	case ".parquet":
		st, err2 := f.Stat()
		if err2 != nil {
			return err2
		}
		err = field.ReadVisitsParquet(f, st.Size(), s)
	case ".csv":
		err = field.ReadVisitsCSV(bufio.NewReaderSize(f, 256<<10), s)
	default:
		err = field.ReadVisits(f, s)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readField reads a field file.
func readField(name string) (field.Field, error) {
	h, err := field.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, field.ErrInput) {
		return nil, command.UsageError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// writeField writes a file that takes its name when all of it is there.
func writeField(name, format string, f field.Field) (err error) {
	out, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(out.Name()))
		}
	}()
	if format == "csv" {
		err = field.WriteCSV(out, f)
	} else {
		err = field.WriteParquet(out, f)
	}
	if err = errors.Join(err, out.Chmod(0o644), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), name)
}
