package nametable

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// randomNames returns n sorted names that share beginnings.
func randomNames(r *rand.Rand, n int) [][]byte {
	all := map[string]bool{"": true}
	for len(all) < n {
		all[strings.Repeat("ab", r.IntN(4))+fmt.Sprint(r.IntN(10*n))+strings.Repeat("x", r.IntN(200)*r.IntN(2))] = true
	}
	var out [][]byte
	for name := range all {
		out = append(out, []byte(name))
	}
	slices.SortFunc(out, bytes.Compare)
	return out[:n]
}

func write(names [][]byte) (blocks, index []byte) {
	var w Writer
	for _, name := range names {
		blocks = w.Append(blocks, name)
	}
	return blocks, w.Index()
}

// What is written is read back, and found in every range that has it.
func TestTable(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 63, 64, 65, 1000} {
		names := randomNames(r, n)
		blocks, index := write(names)
		table, err := New(blocks, index, n)
		if err != nil {
			t.Fatal(err)
		}
		var b Block
		for k := range table.Blocks() {
			if err := table.Decode(k, &b); err != nil {
				t.Fatal(err)
			}
			for i := range b.Len() {
				if got, want := b.Name(i), names[k*BlockSize+i]; !bytes.Equal(got, want) || b.At(b.End(i)) != i {
					t.Fatalf("n %d: name %d is %q, want %q", n, k*BlockSize+i, got, want)
				}
			}
		}
		for range 2000 {
			low := r.IntN(n)
			high := low + r.IntN(n-low) + 1
			name := names[r.IntN(n)]
			if r.IntN(3) == 0 {
				name = append(bytes.Clone(name), '!')
			}
			at, ok := slices.BinarySearchFunc(names[low:high], name, bytes.Compare)
			got, found, err := table.Search(uint32(low), uint32(high), name, &b)
			if err != nil || found != ok || int(got) != low+at {
				t.Fatalf("n %d: %q in [%d, %d) is at %d, %v, %v; want %d, %v", n, name, low, high, got, found, err, low+at, ok)
			}
		}
	}
}

// Whatever the bytes are, reading ends without a panic.
func FuzzTable(f *testing.F) {
	blocks, index := write(randomNames(rand.New(rand.NewPCG(3, 3)), 150))
	f.Add(blocks, index, 150, []byte("ab"))
	f.Fuzz(func(t *testing.T, blocks, index []byte, n int, name []byte) {
		if n < 0 || n > 1<<16 {
			return
		}
		table, err := New(blocks, index, n)
		if err != nil {
			return
		}
		var b Block
		for k := range table.Blocks() {
			_ = table.Decode(k, &b)
			for i := range b.Len() {
				_ = b.Name(i)
			}
		}
		if at, _, err := table.Search(0, uint32(n), name, &b); err == nil && at > uint32(n) {
			t.Errorf("found at %d of %d", at, n)
		}
	})
}
