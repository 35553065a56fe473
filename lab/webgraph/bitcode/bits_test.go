package bitcode

import "testing"

// The worked example of the codes: numbers and the bits that the paper gives.
func TestCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		write func(*Writer)
		bits  string
	}{
		{func(w *Writer) { w.Unary(0); w.Unary(3) }, "10001"},
		{func(w *Writer) { w.Gamma(0); w.Gamma(1); w.Gamma(4) }, "1" + "010" + "00101"},
		{func(w *Writer) { w.Zeta(0, 3) }, "100"},  // 1
		{func(w *Writer) { w.Zeta(1, 3) }, "1010"}, // 2
		{func(w *Writer) { w.Zeta(7, 3) }, "0100000"},
		{func(w *Writer) { w.Zeta(2, 1) }, "011"},
	} {
		var w Writer
		tt.write(&w)
		n := w.Len()
		w.Pad()
		got := ""
		r := NewReader(w.Bytes())
		for range n {
			got += string(rune('0' + r.Bits(1)))
		}
		if got != tt.bits {
			t.Errorf("%s, want %s", got, tt.bits)
		}
	}
	for _, x := range []uint64{0, 1, 2, 7, 8, 1000, 1<<28 - 2, 1<<28 - 1, 1 << 29, 1<<40 + 5, 1<<62 - 1} {
		var w Writer
		w.Gamma(x)
		w.Bits(5, 3)
		if x < 1<<54 {
			w.Zeta(x, 3)
			w.Zeta(x, 1)
		}
		w.Pad()
		r := NewReader(w.Bytes())
		if got := r.Gamma(); got != x || r.Bits(3) != 5 {
			t.Errorf("gamma of %d read as %d", x, got)
		}
		if x < 1<<54 {
			if a, b := r.Zeta(3), r.Zeta(1); a != x || b != x {
				t.Errorf("zeta of %d read as %d and %d", x, a, b)
			}
		}
	}
	for x := int64(-5); x < 5; x++ {
		if Signed(Unsigned(x)) != x || Unsigned(x) > 9 {
			t.Errorf("%d folded to %d", x, Unsigned(x))
		}
	}
	for _, n := range []uint64{1, 2, 3, 5, 64, 1000, 1e9, 1 << 40} {
		var w Writer
		for _, x := range []uint64{0, n / 2, n - 1} {
			w.Below(x, n)
		}
		w.Pad()
		r := NewReader(w.Bytes())
		for _, x := range []uint64{0, n / 2, n - 1} {
			if got := r.Below(n); got != x {
				t.Errorf("%d below %d read as %d", x, n, got)
			}
		}
	}
}
