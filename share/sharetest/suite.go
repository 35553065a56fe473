// Package sharetest is the suite that every store of shares passes.
package sharetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/share/part"
)

// Run checks a store. open gives a new empty one; reopen closes one and opens what
// it left behind.
func Run(t *testing.T, open func(t testing.TB) share.Store, reopen func(t testing.TB, s share.Store) share.Store) {
	t.Run("hosts", func(t *testing.T) { testHosts(t, open(t), reopen) })
	t.Run("files", func(t *testing.T) { testFiles(t, open(t), reopen) })
	t.Run("parts", func(t *testing.T) { testParts(t, open(t), reopen) })
	t.Run("histories", func(t *testing.T) { testHistories(t, open) })
}

func mustSucceed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func listPaths(t testing.TB, s share.Store, host, low, high string) []string {
	t.Helper()
	var out []string
	mustSucceed(t, s.Files(context.Background(), host, low, high, func(key string, f *share.File) error {
		if key != f.Key() || f.Host != host {
			t.Errorf("key %q, file %+v", key, f)
		}
		out = append(out, f.Path)
		return nil
	}))
	return out
}

func testHosts(t *testing.T, s share.Store, reopen func(testing.TB, share.Store) share.Store) {
	ctx := t.Context()
	h := share.Host{
		Name: "smb://a/š", Offline: 5, Next: 9, Fails: 2, Seen: 3, Error: "timeout", Denied: map[string]int64{"x/Ж": 7},
		Visits: []share.Visit{{Part: 1<<63 + 5, Last: 77, History: []byte{1, 2, 3}}},
	}
	mustSucceed(t, s.PutHost(ctx, h))
	mustSucceed(t, s.PutHost(ctx, share.Host{Name: "smb://b"}))
	h.Fails = 3
	mustSucceed(t, s.PutHost(ctx, h))
	s = reopen(t, s)
	all, err := s.Hosts(ctx)
	mustSucceed(t, err)
	if len(all) != 2 || !reflect.DeepEqual(all[0], h) || all[1].Name != "smb://b" {
		t.Errorf("hosts %+v", all)
	}
	mustSucceed(t, s.Commit(ctx, share.Batch{Host: h.Name, Put: []share.File{{Host: h.Name, Path: "x"}}, Parts: []share.PartState{{}}}))
	mustSucceed(t, s.Commit(ctx, share.Batch{Host: h.Name + "x", Put: []share.File{{Path: "other"}}}))
	mustSucceed(t, s.DropHost(ctx, h.Name))
	all, err = s.Hosts(ctx)
	mustSucceed(t, err)
	left, err := s.Parts(ctx, h.Name)
	mustSucceed(t, err)
	if len(all) != 1 || len(left) != 0 || len(listPaths(t, s, h.Name, "", "\xff")) != 0 {
		t.Errorf("after a drop: %v, %v", all, left)
	}
	if got := listPaths(t, s, h.Name+"x", "", "\xff"); len(got) != 1 {
		t.Errorf("a host whose name only begins the same lost its files: %v", got)
	}
}

func testFiles(t *testing.T, s share.Store, reopen func(testing.TB, share.Store) share.Store) {
	ctx := t.Context()
	full := share.File{
		Host: "h", Path: "a/песня.mp3", Size: 1 << 40, Modified: 1_700_000_000, Seen: 5,
		Media: media.Info{
			Title: "T", Artist: "A", Album: "B", Genre: "G", Show: "S", Track: 1, Year: 1982, Season: 2, Episode: 3, Duration: 3 * time.Second, BitRate: 320000,
			Width: 1, Height: 2, Rating: 8.25, Actors: []string{"x", "y"}, Text: "long text",
		},
	}
	mustSucceed(t, s.Commit(ctx, share.Batch{Host: "h", Put: []share.File{{Path: "b"}, full, {Path: "a.txt"}, {Path: "a/z/y"}, {Path: "e\u0301"}, {Path: "é"}}}))
	s = reopen(t, s)
	if got, want := listPaths(t, s, "h", "", "\xff"), []string{"a.txt", "b", "é", "e\u0301", "a/песня.mp3", "a/z/y"}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	low, high := part.Part{Folder: "a"}.Range()
	if got := listPaths(t, s, "h", low, high); len(got) != 2 {
		t.Errorf("a range gives %q", got)
	}
	mustSucceed(t, s.Files(ctx, "h", low, high, func(_ string, f *share.File) error {
		if f.Path == full.Path && !reflect.DeepEqual(*f, full) {
			t.Errorf("%+v, want %+v", *f, full)
		}
		return nil
	}))
	if got := listPaths(t, s, "h", low, ""); len(got) != 2 {
		t.Errorf("an open range gives %q", got)
	}
	stop := errors.New("stop")
	if err := s.Files(ctx, "h", "", "\xff", func(string, *share.File) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the error of f: %v", err)
	}
	mustSucceed(t, s.Commit(ctx, share.Batch{Host: "h", Delete: []string{"b", "a/z/y", "never/was"}, Put: []share.File{{Path: "a.txt", Size: 7}}}))
	if got := listPaths(t, s, "h", "", "\xff"); len(got) != 4 {
		t.Errorf("after deletes %q", got)
	}
	if got := listPaths(t, s, "other", "", "\xff"); len(got) != 0 {
		t.Errorf("another host has %q", got)
	}
}

func testParts(t *testing.T, s share.Store, reopen func(testing.TB, share.Store) share.Store) {
	ctx := t.Context()
	st := share.PartState{
		Part: part.Part{Folder: "a/ž", Left: "/b", Right: "/c"}, Changed: 9,
		Sum: part.Sum{Hash: part.Hash{High: 1 << 63, Low: 2}, Files: 3, Folders: 4, Media: 5, Bytes: 6, Time: 7},
	}
	root := share.PartState{Changed: 1}
	mustSucceed(t, s.Commit(ctx, share.Batch{Host: "h", Parts: []share.PartState{st, root}}))
	s = reopen(t, s)
	got, ok, err := s.Part(ctx, "h", st.Part)
	mustSucceed(t, err)
	if !ok || got != st {
		t.Errorf("part %+v, %v, want %+v", got, ok, st)
	}
	if _, ok, err = s.Part(ctx, "h", part.Part{Folder: "no"}); ok || err != nil {
		t.Errorf("a part that is not there: %v, %v", ok, err)
	}
	mustSucceed(t, s.Commit(ctx, share.Batch{Host: "h", Gone: []part.Part{st.Part}}))
	all, err := s.Parts(ctx, "h")
	mustSucceed(t, err)
	if len(all) != 1 || all[0] != root {
		t.Errorf("parts %+v", all)
	}
}

// testHistories runs random histories beside a map.
func testHistories(t *testing.T, open func(testing.TB) share.Store) {
	s := open(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		host := fmt.Sprintf("host%d", n)
		model := map[string]int64{}
		name := rapid.StringMatching(`[a-cé/]{1,6}`)
		for i := range rapid.IntRange(1, 10).Draw(rt, "commits") {
			b := share.Batch{Host: host}
			touched := map[string]bool{}
			for range rapid.IntRange(0, 8).Draw(rt, "files") {
				p := cleanPath(name.Draw(rt, "path"))
				if p == "" || touched[p] {
					continue
				}
				touched[p] = true
				if rapid.Bool().Draw(rt, "put") {
					b.Put = append(b.Put, share.File{Path: p, Size: int64(i + 1)})
					model[p] = int64(i + 1)
				} else {
					b.Delete = append(b.Delete, p)
					delete(model, p)
				}
			}
			if err := s.Commit(context.Background(), b); err != nil {
				rt.Fatal(err)
			}
		}
		got := map[string]int64{}
		last := ""
		err := s.Files(context.Background(), host, "", "\xff", func(key string, f *share.File) error {
			if key <= last {
				rt.Errorf("%q after %q", key, last)
			}
			last = key
			got[f.Path] = f.Size
			return nil
		})
		if err != nil || !reflect.DeepEqual(got, model) {
			rt.Fatalf("%v, %v; want %v", got, err, model)
		}
	})
}

// cleanPath makes a path of non-empty names.
func cleanPath(p string) string {
	out := ""
	for i, c := range p {
		if c == '/' && (out == "" || out[len(out)-1] == '/' || i == len(p)-1) {
			continue
		}
		out += string(c)
	}
	for len(out) > 0 && out[len(out)-1] == '/' {
		out = out[:len(out)-1]
	}
	return out
}
