package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/freshet/freshet/lab/webgraph"
)

// all gathers lists.
func all(lists iter.Seq2[[]uint32, error]) ([][]uint32, error) {
	var out [][]uint32
	for list, err := range lists {
		if err != nil {
			return out, err
		}
		out = append(out, slices.Clone(list))
	}
	return out, nil
}

func graph(t testing.TB, out [][]uint32) *webgraph.Graph {
	t.Helper()
	g, err := webgraph.New(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestASCII(t *testing.T) {
	t.Parallel()
	out := [][]uint32{{1, 2, 3}, {}, {2, 0}, {}}
	var text bytes.Buffer
	if err := WriteASCII(&text, graph(t, out)); err != nil {
		t.Fatal(err)
	}
	if text.String() != "4\n1 2 3\n\n2 0\n\n" {
		t.Errorf("written as %q", text.String())
	}
	for _, tt := range []struct{ in, want string }{
		{"4\n1 2 3\n\n2 0\n\n", "[[1 2 3] [] [2 0] []]"},
		{"2\r\n1 \r\n0", "[[1] [0]]"},
		{"1\n", "[[]]"},
		{"0\n", "[]"},
		{"", "line 1: 0 numbers; want one: the number of pages"},
		{"1 2\n", "line 1: 2 numbers; want one: the number of pages"},
		{"3\n1\n\n", "[[1] [] []]"},
		{"4\n1\n\n", "line 4: the file ends; 4 pages were announced"},
		{"2\n1\n2\n", "line 3: page 2 of a web of 2 pages"},
		{"1\n0\n0\n", "line 3: more lines than pages: 1 were announced"},
		{"1\nx\n", `line 2: 'x' in a list of page numbers`},
		{"1\n4294967295\n", "line 2: the greatest page number is 4294967294"},
	} {
		nodes, lists, err := ReadASCII(strings.NewReader(tt.in))
		got := ""
		if err == nil {
			var out [][]uint32
			out, err = all(lists)
			got = fmt.Sprint(out)
			if err == nil && int64(len(out)) != nodes {
				t.Errorf("%q: %d lists for %d pages", tt.in, len(out), nodes)
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q: %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestFixed(t *testing.T) {
	t.Parallel()
	out := [][]uint32{{1, 2, 3}, {}, {2, 0}, {0}}
	var nodes, links bytes.Buffer
	if err := WriteFixed(&nodes, &links, graph(t, out)); err != nil {
		t.Fatal(err)
	}
	if nodes.Len() != 4*32 || links.Len() != 2*6*8 {
		t.Fatalf("%d and %d bytes", nodes.Len(), links.Len())
	}
	read := func(nodes, links []byte) (string, error) {
		_, lists, err := ReadFixed(bytes.NewReader(nodes), int64(len(nodes)), bytes.NewReader(links), int64(len(links)))
		if err != nil {
			return "", err
		}
		got, err := all(lists)
		return fmt.Sprint(got), err
	}
	if got, err := read(nodes.Bytes(), links.Bytes()); err != nil || got != fmt.Sprint(out) {
		t.Errorf("%s, err %v", got, err)
	}
	for want, damage := range map[string]func(n, l []byte) ([]byte, []byte){
		"no whole number of records":       func(n, l []byte) ([]byte, []byte) { return n[1:], l },
		"record 0: it is of page 7":        func(n, l []byte) ([]byte, []byte) { n[0] = 7; return n, l },
		"record 2: 2 links from byte 999":  func(n, l []byte) ([]byte, []byte) { binary.LittleEndian.PutUint64(n[64+16:], 999); return n, l },
		"record 0: 4294967295 links":       func(n, l []byte) ([]byte, []byte) { copy(n[8:], "\xff\xff\xff\xff"); return n, l },
		"record 0: a link to page 99 of 4": func(n, l []byte) ([]byte, []byte) { l[0] = 99; return n, l },
	} {
		if _, err := read(damage(bytes.Clone(nodes.Bytes()), bytes.Clone(links.Bytes()))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	jsonl := `{"from":"http://www.b.cz/","to":"http://a.cz/x"}
{"from":"http://a.cz/x","to":"http://a.cz/"}
{"from":"http://a.cz/","to":"http://www.b.cz/"}
{"from":"http://c.b.cz:8080/","to":"http://a.cz/x"}
`
	csv := "from,to\nhttp://www.b.cz/,http://a.cz/x\nhttp://a.cz/x,http://a.cz/\nhttp://a.cz/,http://www.b.cz/\nhttp://c.b.cz:8080/,http://a.cz/x\n"
	for _, text := range []string{jsonl, csv} {
		u := NewURLs()
		if err := ReadLinks(strings.NewReader(text), u.Add); err != nil {
			t.Fatal(err)
		}
		n := u.Number()
		if got, want := fmt.Sprint(n), "{[http://a.cz/ http://a.cz/x http://c.b.cz:8080/ http://www.b.cz/] [0 2 3] [[3 1] [1 0] [0 3] [2 1]]}"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for text, want := range map[string]string{
		"{\"from\":\"http://a/\",\"to\":\"http://b/\"}\n{\"from\":\"x\"}\n": `line 2: "x" is no absolute URL`,
		"{\n":                     "line 1: unexpected end of JSON input",
		"a,b\n":                   "line 1: no columns from and to",
		"from,to\nhttp://a/,b\n":  `line 2: "b" is no absolute URL`,
		"from,to\nhttp://a/\n":    "line 2: wrong number of fields",
		"to,from\n\"http://a/\n,": "line 2",
	} {
		if err := ReadLinks(strings.NewReader(text), NewURLs().Add); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzReadASCII(f *testing.F) {
	for _, s := range []string{"2\n1\n0\n", "1\n", "9999999\n1", "0", "x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		nodes, lists, err := ReadASCII(bytes.NewReader(in))
		if err != nil || nodes == 0 || nodes > 1000 {
			return
		}
		out, err := all(lists)
		if err != nil {
			return
		}
		var text bytes.Buffer
		if err := WriteASCII(&text, graph(t, out)); err != nil {
			t.Fatal(err)
		}
		_, lists, err = ReadASCII(&text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := all(lists); err != nil || !slices.EqualFunc(out, again, slices.Equal) {
			t.Fatalf("%v became %v, err %v", out, again, err)
		}
	})
}

func FuzzReadFixed(f *testing.F) {
	var nodes, links bytes.Buffer
	if err := WriteFixed(&nodes, &links, graph(f, [][]uint32{{1}, {0, 0}})); err != nil {
		f.Fatal(err)
	}
	f.Add(nodes.Bytes(), links.Bytes())
	f.Fuzz(func(_ *testing.T, nodes, links []byte) {
		_, lists, err := ReadFixed(bytes.NewReader(nodes), int64(len(nodes)), bytes.NewReader(links), int64(len(links)))
		if err == nil {
			_, _ = all(lists) // must not panic
		}
	})
}

func FuzzReadLinks(f *testing.F) {
	f.Add([]byte("{\"from\":\"http://a/\",\"to\":\"http://b/\"}\n"))
	f.Add([]byte("from,to\nhttp://a/,http://b/\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		u := NewURLs()
		if err := ReadLinks(bytes.NewReader(in), u.Add); err != nil {
			var line *LineError
			if errors.As(err, &line) && line.Line < 1 {
				t.Fatalf("error of line %d", line.Line)
			}
			return
		}
		n := u.Number()
		if len(n.Names) == 0 {
			return
		}
		out := make([][]uint32, len(n.Names))
		for _, l := range n.Links {
			out[l[0]] = append(out[l[0]], l[1])
		}
		if _, err := webgraph.New(out, n.Sites); err != nil {
			t.Fatal(err)
		}
	})
}
