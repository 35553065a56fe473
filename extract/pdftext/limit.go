package pdftext

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/freshet/freshet/internal/version"
)

// stalledAfter is how many times its CPU time a document may take by the clock: then the
// machine is overloaded, or the file does not come.
const stalledAfter = 10

var (
	errTime    = errors.New("time limit")
	errStalled = errors.New("the document was not read in ten times its time limit: the machine is overloaded, or the file does not come")
)

// runTimed runs read and cancels it when it has used up limit of CPU time, or stalledAfter
// times as much by the clock. Where the system does not know the CPU time of a thread,
// limit is by the clock. The goroutine is locked to its thread meanwhile.
func runTimed(limit time.Duration, cancel context.CancelCauseFunc, read func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used, began := threadClock(), time.Now()
	before, known := used()
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		t := time.NewTimer(limit)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
			}
			now, ok := used()
			left := limit - (now - before)
			switch {
			case !known || !ok || left <= 0:
				cancel(errTime)
				return
			case time.Since(began) > stalledAfter*limit:
				cancel(errStalled)
				return
			}
			t.Reset(max(left, time.Millisecond))
		}
	}()
	err := read()
	close(done)
	<-watched
	return err
}

// Fingerprint stands for what decides whether a document can be read: the program's version
// and the limits. A document that was refused under another one is worth an attempt. p may
// be nil.
func (p *Pool) Fingerprint() uint32 {
	var limits [16]byte
	if p != nil {
		binary.BigEndian.PutUint64(limits[:], uint64(p.config.Memory))
		binary.BigEndian.PutUint64(limits[8:], uint64(p.config.Time))
	}
	return uint32(xxh3.HashString(version.String() + string(limits[:])))
}
