package files

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
)

var now = time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC)

func file(host, path string, in media.Info) share.File {
	return share.File{Host: host, Path: path, Size: 1000, Modified: now.Add(-100 * 24 * time.Hour).Unix(), Seen: now.Add(-100 * 24 * time.Hour).Unix(), Media: in}
}

// newIndex returns an empty index that is closed with the test.
func newIndex(t testing.TB) *Index {
	t.Helper()
	x, err := Open(filepath.Join(t.TempDir(), "names"), Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// campus is a small network with what users look for.
func campus(t testing.TB) *Index {
	x := newIndex(t)
	madonna := media.Info{Title: "Music", Artist: "Madonna", Album: "Music", Genre: "Pop", Year: 2000, Duration: 225 * time.Second, BitRate: 320000}
	low := madonna
	low.BitRate = 128000
	byHost := map[string][]share.File{
		"smb://alpha/share": {
			file("", "incoming/song_01.mp3", madonna),
			file("", "Music/readme.txt", media.Info{}),
			file("", "video/Lost/Season 2/Lost.S02E05.HDTV.XviD-LOL.avi", media.Info{}),
			file("", "video/Lost/Season 2/Lost.S02E11.720p.mkv", media.Info{}),
			file("", "video/Solaris.1972.DVDRip.avi", media.Info{Genre: "Science fiction", Year: 1972, Actors: []string{"Donatas Banionis", "Natalya Bondarchuk"}, Rating: 8.0, Title: "Solaris"}),
			file("", "Музыка/Алла Пугачёва/Миллион алых роз.mp3", media.Info{}),
			file("", "muzika/Žąsys ir ežeras.flac", media.Info{}),
		},
		"ftp://beta": {
			file("", "mp3/Madonna/02 - Music.mp3", low),
			file("", "mp3/Madonna/03 - Impressive Instant.mp3", media.Info{Title: "Impressive Instant", Artist: "Madonna", Album: "Music", Year: 2000}),
			file("", "films/solaris (1972) 1080p.mkv", media.Info{}),
			file("", "Lost/lost - 3x01 - a tale.avi", media.Info{}),
			file("", "distr/linux-6.1.tar.xz", media.Info{}),
		},
	}
	for host, list := range byHost {
		for i := range list {
			list[i].Host = host
		}
		if err := x.Update(t.Context(), host, list, nil); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func search(t testing.TB, x *Index, q string, o Options) *Results {
	t.Helper()
	o.Now = now
	r, err := x.Search(t.Context(), query.Parse(q, now), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func titles(r *Results) string {
	var out []string
	for _, h := range r.Hits {
		out = append(out, h.Title)
	}
	return strings.Join(out, "; ")
}

// "Madonna Music" finds the song by its tag, once, first, with all its copies.
func TestSongByTag(t *testing.T) {
	t.Parallel()
	r := search(t, campus(t), "Madonna Music", Options{Facets: true})
	if len(r.Hits) != 2 || r.Hits[0].Title != "Madonna - Music" {
		t.Fatalf("found %s", titles(r))
	}
	var urls []string
	for _, c := range r.Hits[0].Copies {
		urls = append(urls, c.URL)
	}
	slices.Sort(urls)
	if got := strings.Join(urls, " "); got != "ftp://beta/mp3/Madonna/02%20-%20Music.mp3 smb://alpha/share/incoming/song_01.mp3" {
		t.Errorf("copies %s", got)
	}
	for _, c := range r.Hits[0].Copies {
		if want := `\\alpha\share\incoming\song_01.mp3`; c.Host == "smb://alpha/share" && c.UNC != want {
			t.Errorf("UNC %s, want %s", c.UNC, want)
		}
	}
	if got := fmt.Sprint(r.Facets["kind"], r.Facets["year"]); got != "[{audio 3}] [{2000 3}]" {
		t.Errorf("facets %s", got)
	}
}

// Every query beside the titles that it finds, in order.
func TestSearch(t *testing.T) {
	t.Parallel()
	x := campus(t)
	tests := []struct{ q, want string }{
		{"newest lost", "lost S03E01; Lost S02E11; Lost S02E05"},
		{"lost s02e05", "Lost S02E05"},
		{"kind:video genre:\"science fiction\" year:1970..1979", "Solaris (1972)"},
		{"actor:banionis", "Solaris (1972)"},
		{"Пугачева роз", "Миллион алых роз"},
		{"миллионы алая роза", "Миллион алых роз"},
		{"zasys", "Žąsys ir ežeras"},
		{"Žąsys ežeras", "Žąsys ir ežeras"},
		{"ežero", "Žąsys ir ežeras"},
		{"ьфвщттф шьзкуыышму", "Madonna - Impressive Instant"},
		{"adonn impressive", "Madonna - Impressive Instant"},
		{"impress*", "Madonna - Impressive Instant"},
		{"\"impressive instant\"", "Madonna - Impressive Instant"},
		{"\"instant impressive\"", ""},
		{"madonna -impressive", "Madonna - Music"},
		{"song_01.mp3", "Madonna - Music"},
		{"artist:madonna impressive", "Madonna - Impressive Instant"},
		{"artist:music", ""},
		{"ext:xz", "linux-6.1.tar.xz"},
		{"host:beta ext:mkv", "solaris (1972)"},
		{"folder:distr", "linux-6.1.tar.xz"},
		{"duration:3min..4min", "Madonna - Music"},
		{"rating:>=8", "Solaris (1972)"},
		{"nosuchword", ""},
	}
	for _, tt := range tests {
		if got := titles(search(t, x, tt.q, Options{})); got != tt.want {
			t.Errorf("%s: found %q, want %q", tt.q, got, tt.want)
		}
	}
}

// Offline hosts come last or not at all, and come back.
func TestOffline(t *testing.T) {
	t.Parallel()
	x := campus(t)
	x.Online("smb://alpha/share", false)
	r := search(t, x, "madonna OR пугачева", Options{})
	if got := titles(r); !strings.HasSuffix(got, "Миллион алых роз") || r.Hits[2].Online || !r.Hits[0].Online {
		t.Errorf("greyed: %s", got)
	}
	for _, h := range r.Hits {
		if h.Title == "Madonna - Music" && (len(h.Copies) != 2 || !h.Copies[0].Online || h.Copies[1].Online) {
			t.Errorf("copies: the online one is not first: %+v", h.Copies)
		}
	}
	if got := titles(search(t, x, "пугачева", Options{HideOffline: true})); got != "" {
		t.Errorf("hidden: %s", got)
	}
	if got := titles(search(t, x, "solaris online:false", Options{})); got != "Solaris (1972)" {
		t.Errorf("online:false: %s", got)
	}
	x.Online("smb://alpha/share", true)
	if got := search(t, x, "пугачева", Options{HideOffline: true}); len(got.Hits) != 1 {
		t.Errorf("back: %s", titles(got))
	}
	if err := x.Drop(t.Context(), "smb://alpha/share"); err != nil {
		t.Fatal(err)
	}
	if got := titles(search(t, x, "пугачева", Options{})); got != "" {
		t.Errorf("dropped: %s", got)
	}
}

// A long history of updates finds the same as an index made at once.
func TestUpdatesAgreeWithRebuild(t *testing.T) {
	t.Parallel()
	r := rng.New(1, "files", "churn")
	x := newIndex(t)
	model := map[string]share.File{}
	words := strings.Fields("alpha beta gamma delta Миша ąžuolas 2001 track live song")
	for range 400 {
		host := fmt.Sprintf("smb://h%d/s", r.IntN(4))
		var put []share.File
		var removed []string
		seen := map[string]bool{}
		for range 1 + r.IntN(20) {
			p := fmt.Sprintf("%s/%s %s %d.mp3", words[r.IntN(len(words))], words[r.IntN(len(words))], words[r.IntN(len(words))], r.IntN(3))
			if seen[p] {
				continue
			}
			seen[p] = true
			if _, there := model[host+p]; there && r.IntN(2) == 0 {
				delete(model, host+p)
				removed = append(removed, p)
				continue
			}
			f := file(host, p, media.Info{Title: words[r.IntN(len(words))]})
			model[host+p] = f
			put = append(put, f)
		}
		if err := x.Update(t.Context(), host, put, removed); err != nil {
			t.Fatal(err)
		}
	}
	st, err := x.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if int(st.Files) != len(model) || len(st.Segments) > 40 {
		t.Errorf("%+v, want %d files", st, len(model))
	}
	for _, w := range append(words, "alp*", "elt", "title:live", "folder:song", "-alpha", "ext:mp3") {
		q := query.Parse(w, now)
		res, err := x.Search(t.Context(), q, Options{Now: now, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		fresh := newIndex(t)
		byHost := map[string][]share.File{}
		for _, f := range model {
			byHost[f.Host] = append(byHost[f.Host], f)
		}
		for h, list := range byHost {
			if err := fresh.Update(t.Context(), h, list, nil); err != nil {
				t.Fatal(err)
			}
		}
		want, err := fresh.Search(t.Context(), q, Options{Now: now, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if res.Files != want.Files || res.Total != want.Total || res.Files == 0 {
			t.Errorf("%s: %d files, %d titles; rebuilt %d, %d", w, res.Files, res.Total, want.Files, want.Total)
		}
	}
}

// A piece of a name finds exactly the names that a scan over all of them finds.
func TestSubstringAgreesWithScan(t *testing.T) {
	t.Parallel()
	r := rng.New(2, "files", "substring")
	x := newIndex(t)
	var list []share.File
	for i := range 3000 {
		b := make([]byte, 4+r.IntN(8))
		for j := range b {
			b[j] = "abcde1"[r.IntN(6)]
		}
		list = append(list, file("h", fmt.Sprintf("d%d/%s.bin", i%7, b), media.Info{}))
	}
	if err := x.Update(t.Context(), "h", list, nil); err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{"ab1", "1ed", "aa1", "c1ea", "111", "zz1"} {
		want := 0
		for _, f := range list {
			name := strings.TrimSuffix(f.Name(), ".bin")
			if strings.Contains(name, piece) {
				want++
			}
		}
		if got := search(t, x, piece, Options{}); got.Files != want {
			t.Errorf("%s: %d files, a scan finds %d", piece, got.Files, want)
		}
	}
}

func FuzzSearch(f *testing.F) {
	for _, s := range []string{"madonna music", "-a", "\"a b\"", "x OR -y", "size:>1", "a*", "host:alpha online:true", "((("} {
		f.Add(s)
	}
	x := campus(f)
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := x.Search(t.Context(), query.Parse(s, now), Options{Now: now, Facets: true}); err != nil {
			t.Error(err)
		}
	})
}
