package media

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/extract/pdftext/pdftest"
)

// run runs a program that makes a fixture. In CI it must be there.
func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("CI") == "" {
			t.Skipf("%s is not installed", name)
		}
		t.Fatal(err)
	}
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// encode makes a file of 3 s with ffmpeg and tags of several scripts.
func encode(t testing.TB, name string, video bool, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	cmd := []string{"-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "sine=frequency=440:duration=3"}
	if video {
		cmd = append(cmd, "-f", "lavfi", "-i", "testsrc=size=320x240:rate=10:duration=3")
	}
	cmd = append(cmd, "-metadata", "title=Миллион алых роз", "-metadata", "artist=Žąsys", "-metadata", "album=Music", "-metadata", "genre=Pop", "-metadata", "date=1982", "-metadata", "track=4")
	run(t, "ffmpeg", append(append(cmd, args...), path)...)
	return path
}

func readFile(t testing.TB, path string) (Info, *Blocks, error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := NewBlocks(t.Context(), f, st.Size())
	in, err := Reader{}.Read(t.Context(), filepath.Base(path), b, st.Size())
	return in, b, err
}

// Every format tells title, artist, length and size of the picture by a few
// blocks of the file.
func TestFormats(t *testing.T) {
	t.Parallel()
	type want struct {
		tags   bool
		length float64
		width  int
	}
	tests := []struct {
		name  string
		video bool
		args  []string
		want  want
	}{
		{"a.mp3", false, []string{"-b:a", "128k"}, want{true, 3, 0}},
		{"v22.mp3", false, []string{"-b:a", "64k", "-id3v2_version", "3", "-write_xing", "0"}, want{true, 3, 0}},
		{"vbr.mp3", false, []string{"-q:a", "4"}, want{true, 3, 0}},
		{"a.flac", false, nil, want{true, 3, 0}},
		{"a.ogg", false, []string{"-c:a", "libvorbis"}, want{true, 3, 0}},
		{"a.opus", false, []string{"-c:a", "libopus"}, want{true, 3, 0}},
		{"a.m4a", false, []string{"-c:a", "aac"}, want{true, 3, 0}},
		{"v.mp4", true, []string{"-c:v", "mpeg4", "-c:a", "aac"}, want{true, 3, 320}},
		{"v.mkv", true, []string{"-c:v", "mpeg4", "-c:a", "aac"}, want{true, 3, 320}},
		{"v.webm", true, []string{"-c:v", "libvpx", "-c:a", "libvorbis", "-b:v", "100k"}, want{true, 3, 320}},
		{"v.avi", true, []string{"-c:v", "mpeg4", "-c:a", "mp3"}, want{true, 3, 320}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in, blocks, err := readFile(t, encode(t, tt.name, tt.video, tt.args...))
			if err != nil {
				t.Fatal(err)
			}
			if in.Title != "Миллион алых роз" || in.Artist != "Žąsys" {
				t.Errorf("title %q, artist %q", in.Title, in.Artist)
			}
			if tt.name != "v.avi" && in.Year != 1982 {
				t.Errorf("year %d", in.Year)
			}
			if d := in.Duration.Seconds(); math.Abs(d-tt.want.length) > 0.2 {
				t.Errorf("length %v", in.Duration)
			}
			if in.Width != tt.want.width {
				t.Errorf("width %d", in.Width)
			}
			if in.BitRate < 10_000 || in.BitRate > 2_000_000 {
				t.Errorf("bit rate %d", in.BitRate)
			}
			if n := blocks.BytesRead(); n > 5*BlockSize {
				t.Errorf("%d bytes read", n)
			}
		})
	}
}

// A file of many megabytes with a large cover costs a few blocks all the same.
func TestBytesRead(t *testing.T) {
	t.Parallel()
	cover := bytes.Repeat([]byte{0xff, 0xd8, 0x55}, 300_000)
	frame := func(id string, body []byte) []byte {
		n := len(body)
		return append([]byte{id[0], id[1], id[2], id[3], byte(n >> 21 & 127), byte(n >> 14 & 127), byte(n >> 7 & 127), byte(n & 127), 0, 0}, body...)
	}
	tags := append(frame("APIC", cover), frame("TIT2", []byte("\x03Music"))...)
	n := len(tags)
	file := append([]byte{'I', 'D', '3', 4, 0, 0, byte(n >> 21 & 127), byte(n >> 14 & 127), byte(n >> 7 & 127), byte(n & 127)}, tags...)
	file = append(file, bytes.Repeat([]byte{0xff, 0xfb, 0x90, 0x64, 0, 0, 0, 0}, 1<<20)...)
	b := NewBlocks(t.Context(), bytes.NewReader(file), int64(len(file)))
	in, err := Reader{}.Read(t.Context(), "x.mp3", b, int64(len(file)))
	if err != nil || in.Title != "Music" || in.BitRate != 128000 {
		t.Errorf("%+v, %v", in, err)
	}
	if b.BytesRead() > 4*BlockSize {
		t.Errorf("%d of %d bytes read", b.BytesRead(), len(file))
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"p.jpg", "p.png", "p.gif"} {
		path := filepath.Join(t.TempDir(), name)
		run(t, "ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=64x48", "-frames:v", "1", path)
		if in, _, err := readFile(t, path); err != nil || in.Width != 64 || in.Height != 48 {
			t.Errorf("%s: %+v, %v", name, in, err)
		}
	}
}

func zipped(t testing.TB, files map[string]string) []byte {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for name, body := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// smallPDF is a PDF of one page with a text.
func smallPDF(text string) []byte {
	objects := []string{
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
		"", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>", "<</Title(A small title)/Author(Somebody)>>",
	}
	stream := "BT /F1 12 Tf 10 100 Td (" + text + ") Tj ET"
	objects[3] = fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(stream), stream)
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, o := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer<</Size %d/Root 1 0 R/Info 6 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return b.Bytes()
}

// The words and titles of documents.
func TestDocuments(t *testing.T) {
	t.Parallel()
	pool := pdftest.NewPool(t, pdftext.Config{})
	tests := []struct {
		name        string
		body        []byte
		title, text string
	}{
		{"a.txt", []byte("Žąsys ir   ežeras\nПесня"), "", "Žąsys ir ežeras Песня"},
		{"cp1251.txt", []byte("\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0"), "", "Привет, мир"},
		{"a.html", []byte("<html><head><title>Страница</title><style>p{}</style></head><body><p>Hello <b>world</b></p><script>x()</script></body>"), "Страница", "Hello world"},
		{"a.docx", zipped(t, map[string]string{"word/document.xml": "<d><p><t>Привет</t></p><p><t>мир</t></p></d>", "docProps/core.xml": "<c><title>Док</title></c>"}), "Док", "Привет мир"},
		{"a.odt", zipped(t, map[string]string{"content.xml": "<d><p>Labas rytas</p></d>", "meta.xml": "<m><title>Laiškas</title></m>"}), "Laiškas", "Labas rytas"},
		{"a.pdf", smallPDF("Hello paper"), "A small title", "Hello paper"},
	}
	for _, tt := range tests {
		in, err := Reader{PDF: pool}.Read(t.Context(), tt.name, bytes.NewReader(tt.body), int64(len(tt.body)))
		if err != nil || in.Title != tt.title || in.Text != tt.text {
			t.Errorf("%s: title %q, text %q, %v; want %q, %q", tt.name, in.Title, in.Text, err, tt.title, tt.text)
		}
	}
}

// Names beside what they are copies of.
func TestTitleOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   Info
		want string
	}{
		{"song_01.mp3", Info{Title: "Music", Artist: "Madonna"}, "Madonna - Music"},
		{"02 - Madonna - Music.mp3", Info{}, "Madonna - Music"},
		{"07. Миллион алых роз.mp3", Info{}, "Миллион алых роз"},
		{"Lost.S02E05.HDTV.XviD-LOL.avi", Info{}, "Lost S02E05"},
		{"lost - 3x01 - a tale.avi", Info{}, "lost S03E01"},
		{"Solaris.1972.1080p.BluRay.x264-GROUP.mkv", Info{}, "Solaris (1972)"},
		{"[grp]_Солярис_(1972)_DVDRip.avi", Info{}, "Солярис (1972)"},
		{"2001 A Space Odyssey.mkv", Info{}, "2001 A Space Odyssey"},
		{"report.pdf", Info{}, "report.pdf"},
	}
	for _, tt := range tests {
		if got := TitleOf(tt.name, 1, &tt.in).Display; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	same := [][2]string{
		{"Solaris.1972.1080p.mkv", "solaris (1972) DVDRip.avi"},
		{"Lost.S02E05.avi", "lost 2x05 720p.mkv"},
		{"01 - Music.mp3", "music.flac"},
	}
	for _, p := range same {
		if a, b := TitleOf(p[0], 1, &Info{}).Key, TitleOf(p[1], 2, &Info{}).Key; a != b {
			t.Errorf("%q and %q differ: %q, %q", p[0], p[1], a, b)
		}
	}
}

// Whatever the bytes, a reader ends, stays within its blocks, and gives valid tags.
func FuzzRead(f *testing.F) {
	f.Add("x.mp3", []byte("ID3\x04\x00\x00\x00\x00\x00\x20TIT2\x00\x00\x00\x06\x00\x00\x03Music"))
	f.Add("x.mp3", append([]byte{0xff, 0xfb, 0x90, 0x64}, make([]byte, 200)...))
	f.Add("x.flac", []byte("fLaC\x84\x00\x00\x10\x00\x00\x00\x00\x01\x00\x00\x00\x04\x00\x00\x00A=bc"))
	f.Add("x.ogg", []byte("OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x1e\x01vorbis"))
	f.Add("x.mp4", []byte("\x00\x00\x00\x10ftypisom\x00\x00\x00\x00\x00\x00\x00\x10moov\x00\x00\x00\x08mvhd"))
	f.Add("x.mkv", []byte{0x1A, 0x45, 0xDF, 0xA3, 0x80, 0x18, 0x53, 0x80, 0x67, 0x85, 0x15, 0x49, 0xA9, 0x66, 0x80})
	f.Add("x.avi", []byte("RIFF\x00\x00\x00\x00AVI LIST\x00\x00\x00\x00hdrlavih\x04\x00\x00\x00abcd"))
	f.Add("x.jpg", []byte("\xff\xd8\xff\xe1\x00\x10Exif\x00\x00II*\x00\x08\x00\x00\x00"))
	f.Add("x.pdf", smallPDF("x"))
	f.Add("x.docx", zipped(f, map[string]string{"word/document.xml": "<p>x</p>"}))
	f.Add("x.html", []byte("<title>x"))
	for _, x := range loops {
		f.Add("x.jpg", exifFile(x.tiff))
	}
	pool := pdftest.NewPool(f, pdftext.Config{Memory: 64 << 20, Time: 5 * time.Second})
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		blocks := NewBlocks(t.Context(), bytes.NewReader(b), int64(len(b)))
		begin := time.Now()
		in, err := Reader{PDF: pool}.Read(context.Background(), name, blocks, int64(len(b)))
		if time.Since(begin) > 20*time.Second {
			t.Fatal("slow")
		}
		if in.Problem == ParserFailed {
			t.Error(err)
		}
		if len(in.Title) > maxTag || len(in.Text) > MaxText || strings.ToValidUTF8(in.Title, "") != in.Title || in.Duration < 0 {
			t.Errorf("%+v", in)
		}
	})
}
