package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/strategy/check"
	"github.com/freshet/freshet/lab/strategy/contain"
	"github.com/freshet/freshet/lab/strategy/syntax"
)

// Options say how a program runs. A limit of 0 is none.
type Options struct {
	Web   Web
	Pages Pages  // nil: Synthetic with the seed
	Dir   string // for the files of containers and attributes: empty, removed by its owner
	// Attributes is the folder in which attributes persist from run to run; empty:
	// they begin as zero and are forgotten.
	Attributes string
	Checkpoint time.Duration // between checkpoints of the attributes; 0: at the end only
	Seed       uint64
	Out        io.Writer // one page a line; nil: nowhere
	Log        io.Writer // what print writes; nil: nowhere
	Cost       Cost
	MaxPages   int64 // outputs: the script ends well when they are done
	MaxSteps   int64 // turns of loops, calls, elements copied
	MaxMemory  int64 // bytes in containers
	MaxDisk    int64 // bytes in files, the output included
	// Output receives each page as it is output, its size, and when its fetch ends.
	Output func(page uint32, bytes int64, end float64)
}

// Result is what a run did.
type Result struct {
	Pages    int64   `json:"pages"`    // outputs
	Distinct int64   `json:"distinct"` // different pages
	Repeated int64   `json:"repeated"` // outputs of pages that were output before
	Servers  int64   `json:"servers"`  // with at least one page
	Bytes    int64   `json:"bytes"`
	Seconds  float64 `json:"seconds"` // simulated, until the last fetch ends
	Steps    int64   `json:"steps"`
	Memory   int64   `json:"memory"` // greatest use in containers, bytes
	Disk     int64   `json:"disk"`   // greatest use in files, the output included
}

// Error is an error of a running script.
type Error struct {
	Pos syntax.Pos
	End int
	Msg string
	Err error // what it wraps; may be nil
}

func (e *Error) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Pos.Line, e.Pos.Col, e.Msg)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// tickSteps is how many steps are made between looks at limits and the context.
const tickSteps = 1 << 14

// maxPrinted bounds what print writes.
const maxPrinted = 16 << 20

// machine is a running program. Closures hold pointers into it.
type machine struct {
	ctx  context.Context
	opt  Options
	web  Web
	n    int // nodes
	env  *contain.Env
	cols []*column
	rnd  *rand.Rand

	live    Live    // nil: a stored web
	words   []int64 // globals, and the argument of a call from outside
	strs    []string
	objs    []object
	frames  []*frame
	f       *frame // of the running procedure
	depth   int    // of calls
	nesting int    // of the Go stack, in closures, about

	steps    int64 // until the next tick
	done     int64 // steps before
	saveAt   time.Time
	out      *bufio.Writer
	buf      []byte
	seen     []uint64 // bitmap of pages that were output
	serverOf []uint32 // by page, if the program uses servers
	servers  []bool   // that have a page
	depths   []int32  // by page, if the program uses depth; -1: not found
	last     []float64
	clock    *clock
	result   Result
	printed  int64

	interned map[string]int64
	texts    []string
}

// frame holds the local variables of one call.
type frame struct {
	words   []int64
	strs    []string
	objs    []object
	refs    []*int64
	strRefs []*string
}

// Run runs a program to its end, until it fails, reaches a limit or ctx ends.
// The result is what was done until then. An error of the script is an *Error.
func Run(ctx context.Context, p *check.Program, opt Options) (res Result, err error) {
	m, err := newMachine(ctx, p, opt, nil)
	if m != nil {
		defer func() { err = errors.Join(err, m.releaseContainers()) }()
	}
	if err != nil {
		return Result{}, err
	}
	err = m.runProgram(p)
	if m.out != nil {
		err = errors.Join(err, m.out.Flush())
	}
	if err == nil {
		err = m.saveAttributes()
	}
	m.result.Steps = m.done + tickSteps - m.steps
	m.result.Seconds = m.clock.end
	m.result.Memory, m.result.Disk = m.env.Peak()
	return m.result, err
}

// newMachine prepares a run. The machine is to be closed even if it fails.
func newMachine(ctx context.Context, p *check.Program, opt Options, live Live) (*machine, error) {
	m := &machine{
		live: live,
		ctx:  ctx, opt: opt, web: opt.Web, n: opt.Web.Nodes(), env: contain.NewEnv(opt.Dir, opt.MaxMemory, opt.MaxDisk), rnd: rng.New(opt.Seed, "strategy"),
		words: make([]int64, p.Frame.Words+1), strs: make([]string, p.Frame.Strings), objs: make([]object, p.Frame.Objects),
		interned: map[string]int64{}, steps: tickSteps,
		seen: make([]uint64, (opt.Web.Nodes()+63)/64), servers: make([]bool, max(1, opt.Web.Sites())),
	}
	if m.opt.Pages == nil {
		m.opt.Pages = Synthetic{m.web, opt.Seed}
	}
	if opt.Out != nil {
		m.out = bufio.NewWriterSize(opt.Out, 64<<10)
	}
	m.clock = newClock(opt.Cost, m.web.Sites())
	m.setTickWindow()
	if opt.Checkpoint > 0 {
		m.saveAt = time.Now().Add(opt.Checkpoint)
	}
	if err := m.prepareServices(p.Uses); err != nil {
		return m, err
	}
	for _, a := range p.Attrs {
		c, err := newColumn(m.env, a, m.n)
		if err != nil {
			return m, err
		}
		m.cols = append(m.cols, c)
	}
	if opt.Attributes != "" {
		if err := loadCheckpoint(opt.Attributes, m.cols, m.n); err != nil {
			return m, err
		}
	}
	for _, v := range p.Globals {
		if v.Type.Kind == check.Node {
			m.words[v.Slot] = -1
		}
		if isObject(v.Type) {
			o, err := m.newObject(v.Type)
			if err != nil {
				return m, err
			}
			m.objs[v.Slot] = o
		}
	}
	return m, nil
}

// prepareServices prepares what a program uses of servers, depths and ages.
func (m *machine) prepareServices(u check.Uses) error {
	if m.live != nil {
		return nil
	}
	if u.Server && m.web.Sites() > 0 {
		if err := m.env.Memory(4 * int64(m.n)); err != nil {
			return err
		}
		m.serverOf = make([]uint32, m.n)
		for s := range m.web.Sites() {
			first, pages := m.web.SiteSpan(s)
			for u := first; u < first+pages; u++ {
				m.serverOf[u] = uint32(s)
			}
		}
	}
	if u.Depth {
		if err := m.env.Memory(4 * int64(m.n)); err != nil {
			return err
		}
		m.depths = make([]int32, m.n)
		for i := range m.depths {
			m.depths[i] = -1
		}
	}
	if u.Age {
		if err := m.env.Memory(8 * int64(m.n)); err != nil {
			return err
		}
		m.last = make([]float64, m.n)
	}
	return nil
}

// releaseContainers gives back what lies on disk.
func (m *machine) releaseContainers() error {
	var errs []error
	for _, o := range m.objs {
		if o != nil {
			errs = append(errs, o.Free())
		}
	}
	for _, f := range m.frames {
		for _, o := range f.objs {
			if o != nil {
				errs = append(errs, o.Free())
			}
		}
	}
	for _, c := range m.cols {
		errs = append(errs, c.file.Close())
	}
	return errors.Join(errs...)
}

// runProgram compiles and runs the program.
func (m *machine) runProgram(p *check.Program) error {
	body := newCompiler(m, p).compileBlock(p.Body)
	return m.runProtected(func() { body() })
}

// runProtected calls f and returns the error that it ended with.
func (m *machine) runProtected(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			err = r
		case halted:
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// failAt ends the run with an error at an expression.
func (m *machine) failAt(at place, format string, args ...any) {
	panic(&Error{Pos: at.pos, End: at.end, Msg: fmt.Sprintf(format, args...)})
}

// failOnError ends the run if err is one.
func (m *machine) failOnError(at place, err error) {
	if err != nil {
		panic(&Error{Pos: at.pos, End: at.end, Msg: err.Error(), Err: err})
	}
}

// place is where something happens.
type place struct {
	pos syntax.Pos
	end int
}

// countSteps counts n steps.
func (m *machine) countSteps(at place, n int64) {
	m.steps -= n
	if m.steps < 0 {
		m.checkLimits(at)
	}
}

// checkLimits looks at the limits from time to time.
func (m *machine) checkLimits(at place) {
	m.done += tickSteps - m.steps
	m.steps = tickSteps
	if m.opt.MaxSteps > 0 && m.done > m.opt.MaxSteps {
		m.failOnError(at, fmt.Errorf("steps: %w: more than %d (--max-steps)", contain.ErrLimit, m.opt.MaxSteps))
	}
	m.setTickWindow()
	m.failOnError(at, m.ctx.Err())
	if !m.saveAt.IsZero() && time.Now().After(m.saveAt) {
		m.failOnError(at, m.saveAttributes())
		m.saveAt = time.Now().Add(m.opt.Checkpoint)
	}
}

// setTickWindow makes the next tick come when the limit of steps is reached, if that is
// sooner: a run ends at the same step on every machine.
func (m *machine) setTickWindow() {
	if left := m.opt.MaxSteps - m.done; m.opt.MaxSteps > 0 && left < tickSteps {
		m.done -= tickSteps - left
		m.steps = left
	}
}

// saveAttributes makes a checkpoint of the attributes.
func (m *machine) saveAttributes() error {
	if m.opt.Attributes == "" {
		return nil
	}
	return saveCheckpoint(m.opt.Attributes, m.cols, m.n)
}

// serverOfPage returns the server of a page.
func (m *machine) serverOfPage(u uint32) int {
	switch {
	case m.live != nil:
		return m.live.Server(u)
	case m.serverOf != nil:
		return int(m.serverOf[u])
	case m.web.Sites() == 0:
		return 0
	}
	return m.web.Site(u)
}

// outputPage notes that a page was fetched.
func (m *machine) outputPage(at place, u uint32) {
	if m.out != nil {
		m.buf = append(strconv.AppendUint(m.buf[:0], uint64(u), 10), '\n')
		m.failOnError(at, m.env.Disk(int64(len(m.buf))))
		if _, err := m.out.Write(m.buf); err != nil {
			m.failOnError(at, fmt.Errorf("write the output: %w", err))
		}
	}
	r := &m.result
	r.Pages++
	if bit := uint64(1) << (u % 64); m.seen[u/64]&bit != 0 {
		r.Repeated++
	} else {
		m.seen[u/64] |= bit
		r.Distinct++
	}
	server := 0
	if m.live == nil {
		server = m.serverOfPage(u)
	}
	if !m.servers[server] {
		m.servers[server] = true
		r.Servers++
	}
	bytes := m.opt.Pages.Size(u)
	r.Bytes += bytes
	end := m.clock.addFetch(server, bytes)
	if m.last != nil {
		m.last[u] = end
	}
	if m.depths != nil {
		m.spreadDepth(u)
	}
	if m.opt.Output != nil {
		m.opt.Output(u, bytes, end)
	}
	if r.Pages == m.opt.MaxPages {
		panic(halted{})
	}
}

// spreadDepth spreads the depth of a fetched page to the pages that it links to.
func (m *machine) spreadDepth(u uint32) {
	if m.depths[u] < 0 {
		m.depths[u] = 0
	}
	d := m.depths[u] + 1
	for _, v := range m.web.Out(u) {
		if m.depths[v] < 0 || m.depths[v] > d {
			m.depths[v] = d
		}
	}
}

// internString returns a number for a string, for containers; text is the way back.
func (m *machine) internString(at place, s string) int64 {
	i, ok := m.interned[s]
	if !ok {
		m.failOnError(at, m.env.Memory(int64(len(s))+64))
		i = int64(len(m.texts))
		m.texts = append(m.texts, s)
		m.interned[s] = i
	}
	return i
}
