package format

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/freshet/freshet/lab/webgraph"
)

func TestReadEdges(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     string // links, or the error
	}{
		{"tabs", "1\t2\n3\t4\n", "1>2 3>4"},
		{"no end of line", "1\t2", "1>2"},
		{"blanks, commas, DOS", "1   2\r\n3,4\r\n 5 , 6 \r\n", "1>2 3>4 5>6"},
		{"remarks", "# nodes: 3\n%%MatrixMarket\n\n1 2\n", "1>2"},
		{"empty", "", ""},
		{"greatest", "4294967294 0", "4294967294>0"},
		{"too great", "1 2\n4294967295 0", `line 2: "4294967295 0": the greatest page number is 4294967294`},
		{"far too great", "99999999999999999999999 0", `line 1: "99999999999999999999999 0": the greatest page number is 4294967294`},
		{"one number", "1\n", `line 1: "1": one number; want two: the page and the page that it links to`},
		{"three", "1 2\n1 2 3\n", `line 2: "3" after two page numbers`},
		{"letters", "a b", `line 1: "a b" is no page number`},
		{"letter after digits", "1x 2", `line 1: "1x 2" is no page number`},
		{"negative", "1 -2", `line 1: "-2" is no page number`},
		{"long", strings.Repeat("7", 70_000), `line 1: longer than 65536 bytes: not a list of links`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			err := ReadEdges(strings.NewReader(tt.in), func(u, v uint32) error {
				got = append(got, fmt.Sprintf("%d>%d", u, v))
				return nil
			})
			text := strings.Join(got, " ")
			if err != nil {
				text = err.Error()
			}
			if text != tt.want {
				t.Errorf("got %s\nwant %s", text, tt.want)
			}
		})
	}
	stop := errors.New("stop")
	if err := ReadEdges(strings.NewReader("1 2"), func(_, _ uint32) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error of add: %v", err)
	}
}

// What is written is read again, and no input makes the reader panic.
func FuzzReadEdges(f *testing.F) {
	for _, s := range []string{"1\t2\n0 0", "#\n", "5,6\r\n", "1 2 3", "x", "4294967295 1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out [][]uint32
		err := ReadEdges(bytes.NewReader(in), func(u, v uint32) error {
			if max(u, v) > 1000 {
				return errors.New("too big for a test")
			}
			for len(out) <= int(max(u, v)) {
				out = append(out, nil)
			}
			out[u] = append(out[u], v)
			return nil
		})
		if err != nil {
			return
		}
		g, err := webgraph.New(out, nil)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := WriteEdges(&text, g, 0, g.Nodes()); err != nil {
			t.Fatal(err)
		}
		again := make([][]uint32, len(out))
		err = ReadEdges(&text, func(u, v uint32) error {
			again[u] = append(again[u], v)
			return nil
		})
		if err != nil || !slices.EqualFunc(out, again, slices.Equal) {
			t.Fatalf("%v became %v, err %v", out, again, err)
		}
	})
}
