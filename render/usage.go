package render

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process group takes: memory in bytes, where what processes
// share counts once, and CPU time since its start; 0 where that is not known.
func Usage(group int) (memory int64, cpu time.Duration) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, 0
	}
	var ticks int64
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name in parentheses may hold anything; fields are counted after it.
		_, rest, ok := strings.Cut(string(stat), ") ")
		f := strings.Fields(rest)
		if !ok || len(f) < 22 || f[2] != strconv.Itoa(group) {
			continue
		}
		number := func(i int) int64 { n, _ := strconv.ParseInt(f[i], 10, 64); return n }
		ticks += number(11) + number(12) + number(13) + number(14) // own, and of children that ended
		if own := proportionalMemory(e.Name()); own > 0 {
			memory += own
		} else {
			memory += number(21) * int64(os.Getpagesize())
		}
	}
	return memory, time.Duration(ticks) * time.Second / ticksPerSecond
}

// proportionalMemory is the memory of a process, with its share of what it shares; 0
// where the kernel does not tell. The plain resident sizes of Chromium's
// processes add up to several times as much.
func proportionalMemory(pid string) int64 {
	b, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "Pss:"); ok {
			if f := strings.Fields(v); len(f) > 0 {
				n, _ := strconv.ParseInt(f[0], 10, 64)
				return n << 10
			}
		}
	}
	return 0
}

// ticksPerSecond is USER_HZ, which is 100 on every Linux that Go runs on.
const ticksPerSecond = 100
