// Package pdftext reads title, text and links of PDF documents by PDFium, which
// runs as WebAssembly: a document can neither reach the memory of the process nor
// end it, and a limit of memory or time ends the reading of that document alone.
//
// A Pool holds the compiled module and hands out few sandboxes. Each document is
// read in an instance of its own, so that nothing of one document reaches the
// next. The first document pays for the compilation; see Config.CacheDir.
package pdftext

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Config bounds what reading documents may cost. Zero values are defaults.
type Config struct {
	Memory    int64         // bytes that one document may take; default 256 MiB
	Time      time.Duration // of a CPU that one document may take; default 20 s
	Instances int           // documents that are read at the same time; default 2
	Idle      time.Duration // after which an unused sandbox is released; default 1 min
	// CacheDir keeps the compiled module between runs, about 21 MB. It holds
	// machine code: a directory that others may write is refused, and the module
	// is compiled in memory as without one.
	CacheDir string
}

func (c Config) withPoolDefaults() Config {
	if c.Memory <= 0 {
		c.Memory = 256 << 20
	}
	c.Memory = min(max(c.Memory, 32<<20), 4<<30-1) // the module starts with 16 MiB
	if c.Time <= 0 {
		c.Time = 20 * time.Second
	}
	if c.Instances <= 0 {
		c.Instances = 2
	}
	if c.Idle <= 0 {
		c.Idle = time.Minute
	}
	return c
}

// ErrClosed is the error of a pool that was closed.
var ErrClosed = errors.New("the PDF reader is closed")

// Pool reads documents. It is safe for concurrent use; a document that finds all
// sandboxes at work waits. Nothing is started before the first document.
type Pool struct {
	config Config
	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	slots  chan struct{} // one for each document that is read

	compiling chan struct{} // held while the module is compiled
	cache     wazero.CompilationCache

	mu   sync.Mutex
	idle []*sandbox

	closing  sync.Once
	closeErr error
}

// NewPool returns a pool that starts nothing yet.
func NewPool(c Config) *Pool {
	c = c.withPoolDefaults()
	p := &Pool{config: c, slots: make(chan struct{}, c.Instances), compiling: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// Close ends the documents that are being read and releases the module. Further
// calls do nothing.
func (p *Pool) Close() error {
	if p == nil {
		return nil
	}
	p.closing.Do(func() { p.closeErr = p.closePool() })
	return p.closeErr
}

func (p *Pool) closePool() error {
	p.cancel(ErrClosed)
	for range cap(p.slots) { // they stay taken: no document is read after Close
		p.slots <- struct{}{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, s := range p.idle {
		if s.timer.Stop() {
			errs = append(errs, s.closeSandbox())
		}
	}
	p.idle = nil
	if p.cache != nil {
		errs = append(errs, p.cache.Close(context.Background()))
		p.cache = nil
	}
	return errors.Join(errs...)
}

// sandbox is a runtime of its own for one document at a time: whatever ends it
// ends no other.
type sandbox struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	pool   pdfium.Pool
	memory *memory
	timer  *time.Timer // closes it when idle
}

// acquireSandbox waits for a slot and returns an idle or new sandbox.
func (p *Pool) acquireSandbox(ctx context.Context) (*sandbox, error) {
	select {
	case p.slots <- struct{}{}:
	case <-p.ctx.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if p.ctx.Err() != nil {
		<-p.slots
		return nil, ErrClosed
	}
	if s := p.takeIdle(); s != nil {
		return s, nil
	}
	s, err := p.newSandbox(ctx)
	if err != nil {
		<-p.slots
	}
	return s, err
}

func (p *Pool) takeIdle() *sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		s := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if s.timer.Stop() { // else it is being closed
			return s
		}
	}
	return nil
}

// releaseSandbox gives the slot of a sandbox back; a healthy one is kept for a while.
func (p *Pool) releaseSandbox(s *sandbox, healthy bool) {
	defer func() { <-p.slots }()
	if !healthy || p.ctx.Err() != nil {
		_ = s.closeSandbox() // what broke cannot be closed cleanly
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
	s.timer = time.AfterFunc(p.config.Idle, func() { p.expireSandbox(s) })
}

// expireSandbox closes an idle sandbox. The compiled module stays.
func (p *Pool) expireSandbox(s *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.idle {
		if p.idle[i] == s {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			break
		}
	}
	_ = s.closeSandbox()
}

// newSandbox starts a runtime. The first one compiles the module, others wait
// for that and take the code from the cache.
func (p *Pool) newSandbox(ctx context.Context) (*sandbox, error) {
	select {
	case p.compiling <- struct{}{}:
		defer func() { <-p.compiling }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-p.ctx.Done():
		return nil, ErrClosed
	}
	if p.cache == nil {
		p.cache = openCache(p.config.CacheDir)
	}
	s := &sandbox{memory: &memory{limit: uint64(p.config.Memory)}}
	s.ctx, s.cancel = context.WithCancelCause(p.ctx)
	stop := context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })
	defer stop()
	start := experimental.WithMemoryAllocator(s.ctx, s.memory)
	start = experimental.WithCompilationWorkers(start, 2) // also: ends with its context
	pool, err := webassembly.Init(webassembly.Config{
		Context: start, MaxTotal: 1, MaxIdle: 0,
		RuntimeConfig: wazero.NewRuntimeConfig().
			WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
			WithCompilationCache(p.cache).WithCloseOnContextDone(true),
		FSConfig: wazero.NewFSConfig(), // no file of this machine
		Stdout:   io.Discard, Stderr: io.Discard,
	})
	if cause := context.Cause(s.ctx); cause != nil {
		err = cause
	}
	if err != nil {
		s.cancel(err)
		if pool != nil {
			_ = pool.Close()
		}
		return nil, fmt.Errorf("start the PDF reader: %w", err)
	}
	s.pool = pool
	return s, nil
}

// openCache returns the cache of compiled code: in dir if that is a directory of
// ours alone, else in memory.
func openCache(dir string) wazero.CompilationCache {
	if dir != "" && os.MkdirAll(dir, 0o700) == nil && ownDirectory(dir) {
		if c, err := wazero.NewCompilationCacheWithDir(dir); err == nil {
			return c
		}
	}
	return wazero.NewCompilationCache()
}

func (s *sandbox) closeSandbox() error {
	s.cancel(ErrClosed)
	return s.pool.Close()
}
