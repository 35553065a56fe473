package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var example = &Manifest{Cursor: []byte{0, 1, 255}, Next: 12, Segments: []Segment{{File: "00000003.segment", Size: 99}, {File: "00000011.segment", Size: 5, State: "00000012.state"}}}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no manifest: %v", err)
	}
	for range 2 { // the second replaces the first
		if err := Write(dir, example); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Read(dir); err != nil || !reflect.DeepEqual(got, example) {
		t.Errorf("%+v, %v, want %+v", got, err, example)
	}
}

// Files of the index that nothing names go, all others stay.
func TestRemoveOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"00000003.segment", "00000004.segment", "00000012.state", "00000009.state", "MANIFEST.new", "MANIFEST", "LOCK", "note.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := example.RemoveOthers(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := "00000003.segment 00000012.state LOCK MANIFEST note.txt"; strings.Join(got, " ") != want {
		t.Errorf("left: %v, want %s", got, want)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	body := "{}"
	for _, tt := range []struct {
		text string
		want error
	}{
		{"", ErrDamaged},
		{"freshet index 1 0000000000000000\n{}", ErrDamaged},
		{headerLine(1, body) + body + " ", ErrDamaged},
		{headerLine(2, body) + body, ErrVersion},
		{headerLine(1, "{") + "{", ErrDamaged},
		{headerLine(1, `{"segments":[{"file":"../x"}]}`) + `{"segments":[{"file":"../x"}]}`, ErrDamaged},
		{headerLine(1, body) + body, nil},
	} {
		if _, err := Parse([]byte(tt.text)); !errors.Is(err, tt.want) {
			t.Errorf("%q: %v, want %v", tt.text, err, tt.want)
		}
	}
}

// No change of a manifest goes unnoticed.
func FuzzParse(f *testing.F) {
	body := `{"next":3}`
	good := headerLine(1, body) + body
	f.Add(good)
	f.Add(headerLine(2, body) + body)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse([]byte(text))
		if err == nil && !strings.HasPrefix(text, "freshet index 1 ") {
			t.Errorf("%q is taken for %+v", text, m)
		}
	})
}
