package command

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
)

// Profile writes where CPU time goes and what is allocated, from now until the
// returned function is called; "" leaves one out.
func Profile(cpu, mem string) (end func() error, err error) {
	var f *os.File
	if cpu != "" {
		if f, err = os.Create(cpu); err != nil {
			return nil, Usagef("--cpu-profile: %w", err)
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, errors.Join(fmt.Errorf("--cpu-profile: %w", err), f.Close())
		}
	}
	return func() error {
		var errs []error
		if f != nil {
			pprof.StopCPUProfile()
			errs = append(errs, f.Close())
		}
		if mem != "" {
			errs = append(errs, writeAllocations(mem))
		}
		return errors.Join(errs...)
	}, nil
}

// writeAllocations writes what lives and what was ever allocated.
func writeAllocations(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--mem-profile: %w", err)
	}
	runtime.GC()
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
