package extract

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/htmlindex"
)

// module returns the folder of a module in the cache; without the go command
// the test is skipped.
func module(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		t.Skipf("the go command does not tell where %s lies: %v", path, err)
	}
	return strings.TrimSpace(string(out))
}

// The W3C's cases of the input byte stream, as golang.org/x/net ships them:
// which of mark, header and meta element wins.
func TestCharsetW3C(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(module(t, "golang.org/x/net"), "html/charset/testdata")
	want := map[string]string{
		"HTTP-charset.html": "iso-8859-15", "UTF-16LE-BOM.html": "utf-16le", "UTF-16BE-BOM.html": "utf-16be",
		"meta-content-attribute.html": "iso-8859-15", "meta-charset-attribute.html": "iso-8859-15", "No-encoding-declaration.html": "utf-8",
		"HTTP-vs-UTF-8-BOM.html": "utf-8", "HTTP-vs-meta-content.html": "iso-8859-15", "HTTP-vs-meta-charset.html": "iso-8859-15",
		"UTF-8-BOM-vs-meta-content.html": "utf-8", "UTF-8-BOM-vs-meta-charset.html": "utf-8",
	}
	for name, enc := range want {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		contentType := "text/html"
		if strings.HasPrefix(name, "HTTP") {
			contentType += "; charset=iso-8859-15"
		}
		if text, got := UTF8(b, contentType); got != enc || !utf8.Valid(text) {
			t.Errorf("%s: %s, want %s", name, got, enc)
		}
	}
}

// Every encoding of the standard is read back, whether the header or the page
// names it.
func TestCharsetZoo(t *testing.T) {
	t.Parallel()
	texts := []string{"Žąsis ėda žolę", "Гуси у озера", "Ένα μικρό κείμενο", "こんにちは世界", "中文网页", "한국어 문서", "Ürümqi’de çağ", "שלום", "plain"}
	names := []string{
		"utf-8", "ibm866", "iso-8859-2", "iso-8859-3", "iso-8859-4", "iso-8859-5", "iso-8859-6", "iso-8859-7", "iso-8859-8", "iso-8859-8-i", "iso-8859-10", "iso-8859-13", "iso-8859-14",
		"iso-8859-15", "iso-8859-16", "koi8-r", "koi8-u", "macintosh", "windows-874", "windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254", "windows-1255",
		"windows-1256", "windows-1257", "windows-1258", "x-mac-cyrillic", "gbk", "gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr", "utf-16be", "utf-16le",
	}
	tried := 0
	for _, name := range names {
		enc, err := htmlindex.Get(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, text := range texts {
			raw, err := enc.NewEncoder().Bytes([]byte(text))
			if err != nil {
				continue // the encoding does not have these letters
			}
			tried++
			if got, as := UTF8(raw, "text/html; charset="+name); string(got) != text {
				t.Errorf("header %s: %q as %s, want %q", name, got, as, text)
			}
			if strings.HasPrefix(name, "utf-16") {
				continue // a page in UTF-16 cannot name its encoding; the standard reads the name as UTF-8
			}
			page := append([]byte("<meta charset="+name+"><p>"), raw...)
			if got, as := UTF8(page, "text/html"); !bytes.HasSuffix(got, []byte("<p>"+text)) {
				t.Errorf("meta %s: %q as %s, want %q", name, got, as, text)
			}
		}
	}
	if tried < 80 {
		t.Errorf("only %d texts were tried", tried)
	}
}

// Whatever the bytes and the labels: valid UTF-8 comes out, and no more than
// the longest decoding of the bytes.
func FuzzCharset(f *testing.F) {
	for _, s := range []string{"\xff\xfeA\x00", "\xef\xbb\xbfx", "<meta charset=shift_jis>\x82\xb1", "\x1b$B$3\x1b(B", "\x00\xd8\x00\x00", "<meta http-equiv=content-type content='text/html;charset=utf-7'>+AGE-"} {
		f.Add([]byte(s), "text/html")
		f.Add([]byte(s), "text/html; charset=utf-8")
		f.Add([]byte(strings.Repeat("x", 70)+s), "text/html;charset=UTF-8")
		f.Add([]byte(s), "text/html; charset=iso-2022-jp")
		f.Add([]byte(s), "text/plain; charset=\"gb18030")
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		if saysUTF8(contentType) { // then what the library finds in the label counts
			want, as := UTF8(body, contentType+"; x=y")
			if got, name := UTF8(body, contentType); name != as || !bytes.Equal(got, want) {
				t.Errorf("%q, %s: %q as %s, want %q as %s", body, contentType, got, name, want, as)
			}
		}
		text, name := UTF8(body, contentType)
		if !utf8.Valid(text) {
			t.Errorf("%q as %s is not UTF-8", text, name)
		}
		if enc, _ := charset.Lookup(name); enc == nil && name != "utf-8" {
			t.Errorf("%q is no encoding", name)
		}
		if len(text) > 3*len(body)+3 {
			t.Errorf("%d bytes of %d", len(text), len(body))
		}
	})
}

// html5lib's cases of the input byte stream (html5lib/html5lib-tests, MIT licence): which
// encoding a page has of which nothing is known but its bytes. Where it declares none,
// they expect windows-1252; here what is UTF-8 throughout is taken for that.
func TestCharsetHTML5Lib(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/html5lib-encoding/*.dat")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range bytes.Split(append([]byte("\n"), b...), []byte("\n#data\n"))[1:] {
			data, rest, ok := bytes.Cut(part, []byte("\n#encoding\n"))
			if !ok {
				t.Fatalf("%s: no encoding for %q", name, part)
			}
			label, _, _ := strings.Cut(string(rest), "\n")
			_, want := charset.Lookup(label)
			n++
			_, got := UTF8(data, "")
			if want == "windows-1252" && got == "utf-8" && utf8.Valid(data) {
				continue
			}
			if got != want {
				t.Errorf("%s: %q is %s, want %s", name, data, got, want)
			}
		}
	}
	if n < 70 {
		t.Errorf("only %d cases", n)
	}
}
