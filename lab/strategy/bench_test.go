package strategy

import (
	"fmt"
	"testing"
)

// BenchmarkLoopTurn measures a turn of the loops that strategies consist of.
func BenchmarkLoopTurn(b *testing.B) {
	g := smallWeb(b, 1000, 4, 1)
	for name, src := range map[string]string{
		"count":     "var i, n : integer; begin n := %d; i := 0; while i < n do i := i + 1 end.",
		"for":       "var i, n, k : integer; begin n := %d; for i := 1 to n do k := k + i end.",
		"queue":     "var q : queue of node; n : node; i : integer; begin q.push(node(1)); for i := 1 to %d do begin n := q.pop(); q.push(n) end end.",
		"attribute": "attributes k : integer; var n : node; i : integer; begin n := node(7); for i := 1 to %d do n.k := n.k + 1 end.",
		"visited":   "var n : node; i : integer; begin n := node(7); for i := 1 to %d do if n.visited = 0 then n.visited := 0 end.",
		"call":      "var i, k : integer; function f(x : integer) : integer; begin f := x + 1 end; begin for i := 1 to %d do k := f(k) end.",
		"sorted":    "var q : queue(depth) of node; i : integer; begin q.push(node(1)); for i := 1 to %d do q.push(q.pop()) end.",
		"links":     "var n, m : node; i, k : integer; begin n := node(5); while n.outlinks.size() < 4 do n := node(integer(n) + 1); while i < %d do for m in n.outlinks do i := i + 1 end.",
	} {
		b.Run(name, func(b *testing.B) {
			s := script(b, fmt.Sprintf(src, b.N))
			opt := options(b, g)
			opt.MaxSteps = 0
			if _, err := Run(b.Context(), s, opt); err != nil {
				b.Fatal(err)
			}
		})
	}
}
