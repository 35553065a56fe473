package webgraph

import (
	"slices"
	"strings"
	"testing"
)

func TestColumns(t *testing.T) {
	t.Parallel()
	g := store(t, random(100, 1), nil, Options{})
	rank, lang := make([]float64, 100), make([]uint8, 100)
	for u := range rank {
		rank[u], lang[u] = 1/float64(u+1), uint8(u%3)
	}
	for _, err := range []error{
		SetColumn(g.Dir(), "rank", lang), // replaced below by another type
		SetColumn(g.Dir(), "lang", lang),
		SetColumn(g.Dir(), "rank", rank),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	g, err := Open(g.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if got, err := Column[float64](g, "rank"); err != nil || !slices.Equal(got, rank) {
		t.Errorf("rank: %v, err %v", got, err)
	}
	value, err := g.Values("lang")
	if err != nil || value(5) != 2 {
		t.Errorf("lang of page 5: err %v", err)
	}
	for _, bad := range []struct {
		err  error
		want string
	}{
		{second(Column[uint8](g, "rank")), "holds float64, not uint8"},
		{second(g.Values("color")), `no column "color"; it has ["lang" "rank"]`},
		{SetColumn(g.Dir(), "../x", rank), "a name is"},
		{SetColumn(g.Dir(), "x", rank[:3]), "3 values for 100 pages"},
	} {
		if bad.err == nil || !strings.Contains(bad.err.Error(), bad.want) {
			t.Errorf("error %v, want %q", bad.err, bad.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }
