package feed

import (
	"context"
	"testing"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/store"
)

// forgetful is an engine whose commits are behind what it finds.
type forgetful struct {
	index.Engine
	durable []byte
}

// Cursor implements index.Engine.
func (f *forgetful) Cursor(context.Context) ([]byte, error) { return f.durable, nil }

// trimmed notes up to which change a store was told to forget.
type trimmed struct {
	store.Store
	upTo []uint64
}

// Trim implements store.Store.
func (s *trimmed) Trim(_ context.Context, seq uint64, _ time.Time) error {
	s.upTo = append(s.upTo, seq)
	return nil
}

// The store forgets no change that an engine would lose in a crash.
func TestTrimKeepsWhatIsNotDurable(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	defer b.close(t)
	ctx := context.Background()
	s := &trimmed{Store: b.store}
	e := &forgetful{Engine: b.engine}
	x := b.indexer(t)
	x.config.Store, x.config.Engine = s, e
	step := func() {
		t.Helper()
		x.trimmed = time.Time{} // the minute is over
		if _, err := x.Step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	b.visit(t, bodies(9, "heron"), nil)
	step()
	step()
	if len(s.upTo) != 0 {
		t.Errorf("trimmed up to %v although nothing is durable", s.upTo)
	}
	e.durable = (&cursor{Store: "another", Seq: 7}).encodeCursor()
	b.visit(t, bodies(3, "stork"), nil)
	step()
	if len(s.upTo) != 0 {
		t.Errorf("trimmed up to %v by the cursor of another store", s.upTo)
	}
	e.durable = (&cursor{Store: b.store.ID(), Seq: 4}).encodeCursor()
	b.visit(t, bodies(3, "egret"), nil)
	step()
	if len(s.upTo) != 1 || s.upTo[0] != 3 {
		t.Errorf("trimmed up to %v, want 3: change 4 is the last that is durable", s.upTo)
	}
	if err := b.engine.Commit(ctx); err != nil {
		t.Fatal(err)
	}
}
