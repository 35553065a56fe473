// Package usage says what a process has used of the machine, and what that
// would cost.
package usage

import "syscall"

// CPUSeconds returns the processor time that this process has used, in seconds,
// user and system.
func CPUSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// PeakMemory returns the most memory that this process has held, in MB.
func PeakMemory() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Maxrss) / 1024
}

// Prices of what a crawl uses, in any currency.
type Prices struct {
	CPU     float64 // of an hour of one processor
	Memory  float64 // of a GB for an hour
	Traffic float64 // of a GB received
}

// Crawl is what a crawl used.
type Crawl struct {
	Pages       int64
	CPUSeconds  float64
	MemoryBytes int64
	Seconds     float64 // by the clock
	Bytes       int64   // received
}

// PerMillion returns what a million pages would cost, 0 if there were none.
func (p Prices) PerMillion(c Crawl) float64 {
	if c.Pages == 0 {
		return 0
	}
	cost := p.CPU*c.CPUSeconds/3600 + p.Memory*float64(c.MemoryBytes)/1e9*c.Seconds/3600 + p.Traffic*float64(c.Bytes)/1e9
	return cost / float64(c.Pages) * 1e6
}
