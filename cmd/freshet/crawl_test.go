package main

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// The first interrupt drains, the second stops, whatever the crawl is at.
func TestHeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, over := context.WithCancel(context.Background())
		defer over()
		asked, end := context.WithCancel(ctx)
		var drained, stopped atomic.Int32
		interrupts := make(chan os.Signal, 2)
		go heed(ctx, interrupts, asked.Done(), func() { drained.Add(1) }, func() { stopped.Add(1) })
		end() // as the command's context does at the first
		interrupts <- os.Interrupt
		if synctest.Wait(); drained.Load() == 0 || stopped.Load() != 0 {
			t.Errorf("after the first: %d drained, %d stopped", drained.Load(), stopped.Load())
		}
		interrupts <- os.Interrupt
		if synctest.Wait(); stopped.Load() != 1 {
			t.Errorf("after the second: %d stopped", stopped.Load())
		}
	})
}
