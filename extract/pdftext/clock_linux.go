package pdftext

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadClock returns a function that other threads may call for the CPU time that the
// calling thread has used. The caller has locked its goroutine to the thread.
func threadClock() func() (time.Duration, bool) {
	const perThread, scheduled = 4, 2                         // CPUCLOCK_PERTHREAD_MASK, CPUCLOCK_SCHED
	clock := int32(^unix.Gettid())<<3 | perThread | scheduled // as pthread_getcpuclockid(3) makes it
	return func() (time.Duration, bool) {
		var t unix.Timespec
		err := unix.ClockGettime(clock, &t)
		return time.Duration(t.Nano()), err == nil
	}
}
