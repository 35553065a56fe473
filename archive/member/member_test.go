package member

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// unpack reads a member with the standard library, which checks its sum, and
// takes care that nothing follows it.
func unpack(t testing.TB, packed []byte) []byte {
	t.Helper()
	in := bytes.NewReader(packed)
	r, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	r.Multistream(false)
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if in.Len() != 0 {
		t.Fatalf("%d bytes behind the member", in.Len())
	}
	return out
}

// page makes text as of a page: few words are frequent.
func page(r *rand.Rand, n int, alphabet string) []byte {
	letters := []rune(alphabet)
	words := make([]string, 600)
	for i := range words {
		for range 1 + r.IntN(9) {
			words[i] += string(letters[r.IntN(len(letters))])
		}
	}
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "<p class=\"text\">%s %s <a href=\"/section-%d/page-%d.html\">", words[int(math.Exp(r.Float64()*math.Log(600)))-1], words[r.IntN(600)], r.IntN(13), r.IntN(9999))
	}
	return b.Bytes()[:n]
}

// Everything that one encoder packs, one after the other, is read back.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	inputs := map[string][]byte{
		"empty": {}, "one byte": {7}, "eleven": []byte("hello there"), "zeros": make([]byte, 300_000), "noise": noise(200_000),
		"long matches": bytes.Repeat(noise(259), 400), "far matches": append(append(noise(maxAway), noise(100)...), noise(maxAway)...),
		"latin": page(r, 50_000, "abcdefghijklmnopqrstuvwxyz"), "cyrillic": page(r, 50_000, "абвгдежзийклмнопрстуфхцчшщыэюя"),
		"noise, then text": append(noise(chunk), page(r, 3*chunk, "aeioutnrs")...), "all bytes": bytes.Repeat([]byte(strings.Repeat("x", 20)), 3000),
	}
	for n := range 40 {
		inputs[fmt.Sprint("length ", n)] = page(r, n, "ab")
		inputs[fmt.Sprint("around a chunk ", n)] = page(r, chunk-20+n, "abcdef")
	}
	far := []byte(hex.EncodeToString(noise(maxAway))) // shrinks without matches
	for _, away := range []int{maxAway - 1, maxAway, maxAway + 1} {
		inputs[fmt.Sprint("match at ", away)] = append(bytes.Clone(far[:away]), far[:40]...)
	}
	inputs["a window of hex"] = far[:chunk]
	var e Encoder
	for round := range 8 { // maps come in another order each time
		for name, in := range inputs {
			packed := e.Append([]byte("before"), in)
			if !bytes.HasPrefix(packed, []byte("before")) {
				t.Fatal("what was there is gone")
			}
			if got := unpack(t, packed[6:]); !bytes.Equal(got, in) {
				t.Fatalf("round %d, %s: %d bytes came back of %d, or others", round, name, len(got), len(in))
			}
			if most := len(in) + len(in)/5000 + 40; len(packed)-6 > most {
				t.Errorf("%s: %d bytes take %d", name, len(in), len(packed)-6)
			}
		}
	}
}

// Pages of one kind take little more than what compress/flate makes of them at
// its fastest, also those after the one that the code was learnt from.
func TestSize(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	text := page(r, 1<<20, "abcdefghijklmnopqrstuvwxyzabcdeinorst")
	var e Encoder
	ours, theirs := 0, 0
	var buf bytes.Buffer
	w, err := flate.NewWriter(&buf, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at+12_000 < len(text); at += 12_000 {
		in := text[at : at+12_000]
		ours += len(e.Append(nil, in))
		buf.Reset()
		w.Reset(&buf)
		_, _ = w.Write(in)
		_ = w.Close()
		theirs += buf.Len() + 18
	}
	if float64(ours) > 1.08*float64(theirs) {
		t.Errorf("%d bytes, compress/flate %d", ours, theirs)
	}
}

// A code of a kind of text that comes no more is given up at once.
func TestLearnsAnew(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	var used, fresh Encoder
	for range 3 {
		used.Append(nil, page(r, 12_000, "abcdefghijklmnop"))
	}
	other := page(r, 12_000, "абвгдежзийклмнопрстуфхцчшщыэюя")
	a, b := len(used.Append(nil, other)), len(fresh.Append(nil, other))
	if a != b {
		t.Errorf("%d bytes after other text, %d without", a, b)
	}
}

// Records of several kinds in turn take little more than each kind by itself does:
// their codes are kept side by side.
func TestKeepsCodes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	var kinds [3][]byte
	for i, alphabet := range []string{"abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщыэюя", "0123456789ABCDEF{}[],:"} {
		kinds[i] = page(r, 240_000, alphabet)
	}
	var together Encoder
	var alone [3]Encoder
	mixed, apart := 0, 0
	for at := 0; at < 240_000; at += 12_000 {
		for i := range kinds {
			in := kinds[i][at : at+12_000]
			mixed += len(together.Append(nil, in))
			apart += len(alone[i].Append(nil, in))
		}
	}
	if float64(mixed) > 1.01*float64(apart) {
		t.Errorf("%d bytes in turn, %d one kind by itself", mixed, apart)
	}
	if n := together.shelf.n; n != len(kinds) {
		t.Errorf("%d codes for %d kinds", n, len(kinds))
	}
}

// All lengths of matches and all distances stand in the tables of RFC 1951.
func TestSymbols(t *testing.T) {
	t.Parallel()
	base, sym := 3, 257
	for width := range 6 {
		for range map[bool]int{true: 8, false: 4}[width == 0] {
			for x := range 1 << width {
				s, extra, w := lengthSymbol(base + x)
				if base+x < maxMatch && (s != sym || w != width || extra != uint64(x)) {
					t.Errorf("length %d: symbol %d, %d in %d bits; want %d, %d in %d", base+x, s, extra, w, sym, x, width)
				}
			}
			base += 1 << width
			sym++
		}
	}
	if s, _, w := lengthSymbol(maxMatch); s != 285 || w != 0 {
		t.Errorf("length 258: symbol %d, %d bits", s, w)
	}
	first := uint32(0)
	for s := range uint32(distances) {
		width := uint32(0)
		if s >= 4 {
			width = s/2 - 1
		}
		for _, away := range []uint32{first, first + 1<<width - 1} {
			if got, _ := distanceSymbol(away); got != s {
				t.Errorf("distance %d: symbol %d, want %d", away+1, got, s)
			}
		}
		first += 1 << width
	}
	if first != maxAway {
		t.Errorf("distances end at %d", first)
	}
}

// FuzzAppend packs two records with one encoder and reads them with
// compress/flate; what compress/flate packs of the same is equal when unpacked.
func FuzzAppend(f *testing.F) {
	r := rand.New(rand.NewPCG(9, 10))
	f.Add([]byte{}, []byte("a"), uint16(1))
	f.Add(page(r, 2000, "abcdef"), page(r, 500, "xyz"), uint16(3))
	f.Add(bytes.Repeat([]byte{0}, 300), bytes.Repeat([]byte("ab"), 200), uint16(200))
	f.Fuzz(func(t *testing.T, a, b []byte, times uint16) {
		b = bytes.Repeat(b, min(int(times), 100_000/max(1, len(b))))
		var e Encoder
		for _, in := range [][]byte{a, b, append(bytes.Clone(a), b...), b} {
			packed := e.Append(nil, in)
			out, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed[10 : len(packed)-8])))
			if err != nil || !bytes.Equal(out, in) {
				t.Fatalf("%v; %d bytes came back of %d", err, len(out), len(in))
			}
			sum, size := binary.LittleEndian.Uint32(packed[len(packed)-8:]), binary.LittleEndian.Uint32(packed[len(packed)-4:])
			if sum != crc32.ChecksumIEEE(in) || int(size) != len(in) {
				t.Fatalf("trailer %x %d", sum, size)
			}
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	in := page(rand.New(rand.NewPCG(11, 12)), 12_000, "abcdefghijklmnopqrstuvwxyz")
	b.Run("one pass", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		var e Encoder
		var out []byte
		for b.Loop() {
			out = e.Append(out[:0], in)
		}
		b.ReportMetric(float64(len(in))/float64(len(out)), "ratio")
	})
	b.Run("compress/gzip", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			out.Reset()
			w.Reset(&out)
			_, _ = w.Write(in)
			_ = w.Close()
		}
		b.ReportMetric(float64(len(in))/float64(out.Len()), "ratio")
	})
}
