package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/share"
)

// ScanOptions are what a single scan may be told beside the configuration.
type ScanOptions struct {
	// Sources are addresses of shares beside those of the configuration. Here
	// http(s):// is a share, too: the listings of a web server.
	Sources []string
	// Progress, if not nil, is called several times a second.
	Progress func(share.Counts)
}

// ScanReport is what came of a single scan.
type ScanReport struct {
	Robot   share.Status
	Hosts   []string // names of the hosts of the sources
	Counts  share.Counts
	Elapsed time.Duration
}

// Scan scans every part of the shares once.
func (n *Node) Scan(ctx context.Context, o ScanOptions) (*ScanReport, error) {
	start := time.Now()
	if err := makeDataDir(n.options.Dir); err != nil {
		return nil, errors.Join(err, n.close())
	}
	pdf := newPDFPool(n.config, n.options.Dir)
	report, err := n.scan(ctx, pdf, o)
	if err := errors.Join(err, n.close(), pdf.Close()); err != nil {
		return nil, err
	}
	report.Elapsed = time.Since(start)
	return report, nil
}

func (n *Node) scan(ctx context.Context, pdf *pdftext.Pool, o ScanOptions) (*ScanReport, error) {
	st, err := OpenShareStore(n.options.Dir)
	if err != nil {
		return nil, err
	}
	n.shares = &Shares{Store: st, Dir: n.options.Dir}
	if n.files, err = newShareRobot(ctx, n.config, n.shares, pdf, n.log); err != nil {
		return nil, err
	}
	hosts, err := n.addConfiguredShares(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range o.Sources {
		names, err := n.files.AddSource(ctx, s)
		if err != nil {
			return nil, SourceError{err}
		}
		hosts = append(hosts, names...)
	}
	services, stop := context.WithCancel(ctx)
	var aside sync.WaitGroup
	if o.Progress != nil {
		aside.Go(func() { reportProgress(services, func() { o.Progress(n.files.Status().Counts) }) })
	}
	counts, err := n.files.Sweep(ctx, hosts)
	stop()
	aside.Wait()
	return &ScanReport{Robot: n.files.Status(), Hosts: hosts, Counts: counts}, err
}

// SourceError is the error of a source that is none: the user's, not the machine's.
type SourceError struct{ Err error }

// Error implements error.
func (e SourceError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e SourceError) Unwrap() error { return e.Err }

// addConfiguredShares gives the shares of the configuration to their robot and returns
// the names of their hosts.
func (n *Node) addConfiguredShares(ctx context.Context) (hosts []string, err error) {
	for _, s := range n.config.Sources {
		if !s.Share() {
			continue
		}
		spec, err := specOf(s)
		if err != nil {
			return nil, err
		}
		o, err := sourceOptions(&s, n.config.Share.Timeout)
		if err != nil {
			return nil, err
		}
		names, err := n.files.AddSourceWith(ctx, spec, o)
		if err != nil {
			return nil, SourceError{fmt.Errorf("source: %w", err)}
		}
		hosts = append(hosts, names...)
	}
	return hosts, nil
}
