package crawl

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc (USER_HZ, 100 on all of Linux's
// platforms that Go has).
const tick = 0.01

// sample is what CPU time the machine had used by a moment, of all it had, in
// seconds.
type sample struct {
	at        time.Time
	used, all float64
}

// watchMachine notes the machine's CPU time until the returned function is
// called, which returns the notes.
func watchMachine() func() []sample {
	var out []sample
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(100 * time.Millisecond)
		defer t.Stop()
		for {
			if s, ok := machineTime(); ok {
				out = append(out, s)
			}
			select {
			case <-stop:
				return
			case <-t.C:
			}
		}
	}()
	return func() []sample { close(stop); <-done; return out }
}

// machineTime reads the first line of /proc/stat.
func machineTime() (s sample, ok bool) {
	b, err := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if err != nil || len(f) < 9 || f[0] != "cpu" {
		return s, false
	}
	s.at = time.Now()
	for i, v := range f[1:9] { // user nice system idle iowait irq softirq steal
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return s, false
		}
		s.all += n * tick
		if i != 3 && i != 4 {
			s.used += n * tick
		}
	}
	return s, true
}

// busyShare is the share of CPU time that was used between two moments.
func busyShare(all []sample, from, to time.Time) float64 {
	var first, last *sample
	for i := range all {
		if all[i].at.Before(from) || all[i].at.After(to) {
			continue
		}
		if first == nil {
			first = &all[i]
		}
		last = &all[i]
	}
	if first == nil || last.all <= first.all {
		return 0
	}
	return (last.used - first.used) / (last.all - first.all)
}
