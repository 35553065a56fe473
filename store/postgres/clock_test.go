package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
)

// A host rests by the database's clock, whichever of two nodes wrote its rest or asks
// for it, and however their clocks are off within what is allowed.
func TestRestsByDatabaseClock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const rest = 4 * time.Second
	for _, tt := range []struct {
		name            string
		writer, claimer time.Duration // how far their clocks are ahead
	}{
		{"equal clocks", 0, 0},
		{"who asks is ahead", 0, 4 * time.Second},
		{"who asks is behind", 0, -4 * time.Second},
		{"who wrote is ahead", 4 * time.Second, 0},
		{"who wrote is behind", -4 * time.Second, 0},
		{"both are off", -4 * time.Second, 4 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address := cluster.Database(t)
			one, two := open(t, address, Config{Node: "one"}), open(t, address, Config{Node: "two"})
			one.offset.Store(-tt.writer.Milliseconds()) // as measured with such a clock
			two.offset.Store(-tt.claimer.Milliseconds())
			add(t, one, "http://h/1", "http://h/2")
			l := claim(t, one, time.Now().Add(tt.writer))
			if l == nil {
				t.Fatal("no host")
			}
			begin := time.Now()
			b := &store.Batch{Host: l.Host}
			b.Host.Next = begin.Add(tt.writer + rest)
			if _, err := one.Finish(ctx, l, b); err != nil {
				t.Fatal(err)
			}
			got, next, err := two.Claim(ctx, "two", time.Now().Add(tt.claimer), time.Minute)
			if since := time.Since(begin); err != nil || got != nil && since < rest {
				t.Fatalf("given out %v after it had begun to rest for %v, %v", since, rest, err)
			}
			if off := next.Sub(begin.Add(tt.claimer + rest)).Abs(); got == nil && off > 200*time.Millisecond {
				t.Errorf("it is to be asked for at %v by its clock, %v off", next, off)
			}
		})
	}
}
