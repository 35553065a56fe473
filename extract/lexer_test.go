package extract

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/freshet/freshet/weburl"
)

// lineEnds are white space in text, of which one is as good as many. The lexer
// keeps returns, the Tokenizer makes line feeds of them before it decodes "&#13;".
var lineEnds = regexp.MustCompile(`[\r\n]+`)

// dump prints the tokens of a document but comments.
func dump(z tokens, scripted bool) string {
	var b strings.Builder
	for {
		k := z.Next()
		switch k {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			fmt.Fprintf(&b, "text %q\n", lineEnds.ReplaceAll(z.Text(), []byte("\n")))
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			name, more := z.TagName()
			fmt.Fprintf(&b, "%v %q", k, name)
			if k == html.StartTagToken && string(name) == "noscript" && scripted {
				z.NextIsNotRawText()
			}
			for more && k != html.EndTagToken {
				var key, val []byte
				key, val, more = z.TagAttr()
				fmt.Fprintf(&b, " %q=%q", key, val)
			}
			b.WriteByte('\n')
		}
	}
}

// same fails unless the lexer is in doubt or sees what the Tokenizer sees.
func same(t *testing.T, doc []byte) (doubt bool) {
	t.Helper()
	for _, scripted := range []bool{false, true} {
		var z lexer
		z.resetLexer(doc)
		got := dump(&z, scripted)
		if z.doubt {
			return true
		}
		tok := html.NewTokenizer(bytes.NewReader(doc))
		tok.SetMaxBuf(4 << 20)
		if want := dump(tok, scripted); got != want {
			t.Fatalf("document %q\ngot\n%swant\n%s", doc, got, want)
		}
	}
	return false
}

var lexerSeeds = []string{
	`<!DOCTYPE html><title>a &amp; b<i></title><p class=x id='y' data-z="1 > 2">text<br/>more</p>`,
	"<a href=/x/>1</a><a/b/c=d><a =e=f><A HREF=\"X&amp;y&copy=1&copy&notit;&#x41&#65;&#0;\">", "a<b", "a<", "</", "</>", "</ x>y", "<!>x", "<!-->x", "<!--->x", "<!--a--!>b", "<!--a--!-->b", "<!-- a -- b --", "<?xml?>z",
	"<script>if (a<b) x('</scr'+'ipt>')</script >x", "<script><!-- <script> </script> --></script>y", "<style></style\n>q<textarea>&lt;</p></textarea>", "<title></titl</title>", "<noscript><a href=x></noscript>z",
	"<p a a=1 A=2 b>", "<p a=\"1\r\n2\">\r\ntext\r", "\x00<p>", "<plaintext><b>", "<xmp><b></xmp>", "<p\n/\n/>", "<p a='", "<p a", "&notit; &amp &ampx &#x; &; &semi; &fjlig; &nGt;", "<p a='&semi;&ampx&amp;=&amp=&lt'>", "<iframe><p></iframe>", "<svg><![CDATA[a>b]]></svg>",
}

func FuzzLexer(f *testing.F) {
	for _, s := range lexerSeeds {
		f.Add([]byte(s))
	}
	f.Add(samplePage())
	f.Fuzz(func(t *testing.T, doc []byte) { same(t, doc) })
}

// The cases of the html5lib suite, as the library ships them.
func TestLexerOnHTML5Lib(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(module(t, "golang.org/x/net"), "html/testdata/html5lib-tests/tree-construction/*.dat"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no html5lib cases in the module: %v", err)
	}
	cases, doubts := 0, 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq("\n"+string(b), "\n#data\n") {
			doc, _, _ := strings.Cut(part, "\n#errors")
			cases++
			if same(t, []byte(doc)) {
				doubts++
			}
		}
	}
	t.Logf("%d cases, %d left to the Tokenizer", cases, doubts)
	if cases < 1000 || doubts*5 > cases {
		t.Errorf("%d of %d cases are in doubt", doubts, cases)
	}
}

// Both ways of reading give the same page.
func TestFastIsSlow(t *testing.T) {
	t.Parallel()
	for _, doc := range append([]string{string(samplePage())}, lexerSeeds...) {
		at, o := base(t), Options{Traits: true, Images: true}.withExtractDefaults()
		fast := &scanner{o: o, at: weburl.Resolver{Base: at}, page: &Page{}}
		slow := &scanner{o: o, at: weburl.Resolver{Base: at}, page: &Page{}}
		if !fast.scanFast([]byte(doc)) {
			continue
		}
		slow.scanSlow([]byte(doc))
		fast.finishDocument()
		slow.finishDocument()
		if !reflect.DeepEqual(fast.page, slow.page) {
			t.Errorf("%q: fast %+v, slow %+v", doc, fast.page, slow.page)
		}
	}
}

// The folder against the plain way of doing it.
func FuzzFolder(f *testing.F) {
	f.Add([]byte(" a  b\n c"), []byte("d "), 100)
	f.Add([]byte("one two three"), []byte(" four"), 9)
	f.Fuzz(func(t *testing.T, a, b []byte, limit int) {
		limit &= 0xff
		var got folder
		got.appendText(a, limit)
		got.addGap()
		got.appendText(b, limit)
		isSpaceRune := func(r rune) bool { return r < 0x80 && isSpace(byte(r)) }
		var words []string
		for _, part := range [][]byte{a, b} {
			for _, w := range bytes.FieldsFunc(part, isSpaceRune) {
				more := append(slices.Clone(words), string(w))
				if len(strings.Join(more, " ")) > limit {
					break
				}
				words = more
			}
		}
		if want := strings.Join(words, " "); got.String() != want {
			t.Errorf("%q, %q, limit %d: %q, want %q", a, b, limit, got.String(), want)
		}
		want := spacesIn(got.String())
		if n := min(len(want), len(got.spaces)); !slices.Equal(got.spaces[:n], want[:n]) || len(got.b) > 0 && n < len(want) {
			t.Errorf("%q, %q, limit %d: spaces %x, want %x", a, b, limit, got.spaces, want)
		}
	})
}

func BenchmarkLexer(b *testing.B) {
	doc := samplePage()
	read := func(z tokens) {
		for z.Next() != html.ErrorToken {
			_ = z.Raw()
		}
	}
	b.Run("lexer", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		var z lexer
		for range b.N {
			z.resetLexer(doc)
			read(&z)
		}
	})
	b.Run("tokenizer", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for range b.N {
			read(html.NewTokenizer(bytes.NewReader(doc)))
		}
	})
}
