//go:build !linux

package pdftext

import "time"

// threadClock returns a function that knows no CPU time.
func threadClock() func() (time.Duration, bool) {
	return func() (time.Duration, bool) { return 0, false }
}
