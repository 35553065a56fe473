package media

import (
	"slices"
	"strings"
	"testing"
)

const filmNFO = `<?xml version="1.0" encoding="UTF-8" standalone="yes" ?>
<movie><title>Солярис</title><year>1972</year><genre>Science fiction</genre><genre>Drama</genre><rating>8.1</rating>
<actor><name>Донатас Банионис</name><role>Kris</role></actor><actor><name>Natalya Bondarchuk</name></actor></movie>`

func TestParseNFO(t *testing.T) {
	t.Parallel()
	in, err := ParseNFO([]byte(filmNFO))
	if err != nil || in.Title != "Солярис" || in.Year != 1972 || in.Rating != 8.1 || in.Genre != "Science fiction, Drama" || !slices.Equal(in.Actors, []string{"Донатас Банионис", "Natalya Bondarchuk"}) {
		t.Errorf("%+v, %v", in, err)
	}
	for _, bad := range []string{"", "▄▄ RELEASE ▄▄", "<html><title>x</title></html>"} {
		if in, err := ParseNFO([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, in)
		}
	}
}

func TestKnowledge(t *testing.T) {
	t.Parallel()
	const table = "title,year,genre,actors,rating\nSolaris,1972,Science fiction,Donatas Banionis; Natalya Bondarchuk,8.0\nSolaris,2002,Drama,George Clooney,6.2\nLost,,Adventure,Matthew Fox,8.3\n"
	k, err := ParseKnowledge(strings.NewReader(table), false)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, genre string }{
		{"Solaris.1972.DVDRip.avi", "Science fiction"},
		{"solaris (2002) 720p.mkv", "Drama"},
		{"Lost.S02E05.avi", "Adventure"},
		{"Solaris.1999.avi", ""},
		{"Stalker.avi", ""},
		{"Solaris 1972.txt", ""},
	}
	for _, tt := range tests {
		var in Info
		if k.Tell(tt.name, &in); in.Genre != tt.genre {
			t.Errorf("%s: %+v, want %q", tt.name, in, tt.genre)
		}
	}
	own := Info{Genre: "Own"}
	if k.Tell("Lost.S01E01.avi", &own); own.Genre != "Own" || own.Rating != 8.3 {
		t.Errorf("%+v", own)
	}
	if k, err = ParseKnowledge(strings.NewReader(`[{"title":"Stalker","year":1979,"actors":["A"],"rating":8.1}]`), true); err != nil {
		t.Fatal(err)
	}
	var in Info
	if k.Tell("Stalker.1979.mkv", &in); in.Rating != 8.1 {
		t.Errorf("%+v", in)
	}
	for _, bad := range []string{"title,colour\na,red\n", "title,year\nx,soon\n", ""} {
		if _, err := ParseKnowledge(strings.NewReader(bad), false); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzParseNFO(f *testing.F) {
	f.Add([]byte(filmNFO))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = ParseNFO(b) })
}

func FuzzParseKnowledge(f *testing.F) {
	f.Add("title,year\nx,1999\n", false)
	f.Add(`[{"title":"x"}]`, true)
	f.Fuzz(func(_ *testing.T, s string, j bool) { _, _ = ParseKnowledge(strings.NewReader(s), j) })
}
