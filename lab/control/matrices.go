package control

import (
	"fmt"
	"math"
)

// Checks of the matrices of a model: an error names the entry that is wrong.

// checkedBMAP checks D_0, ..., D_K.
func checkedBMAP(name string, d [][][]float64) ([]mat, error) {
	if len(d) < 2 {
		return nil, fmt.Errorf("%s: %d matrices, want D_0 and at least D_1", name, len(d))
	}
	names := make([]string, len(d))
	for k := range d {
		names[k] = fmt.Sprintf("%s[%d]", name, k)
	}
	return checkedGenerator(names, d)
}

// slack is how far sums in a file may be from what they should be: files are
// rounded. What is left is put right on the diagonal.
const slack = 1e-6

// checkedGenerator checks matrices of which the first has negative diagonal and
// whose sum has rows that sum to 0.
func checkedGenerator(names []string, all [][][]float64) ([]mat, error) {
	w := len(all[0])
	if w == 0 {
		return nil, fmt.Errorf("%s: missing or empty", names[0])
	}
	if w > maxPhases {
		return nil, fmt.Errorf("%s: %d phases are more than %d", names[0], w, maxPhases)
	}
	out := make([]mat, len(all))
	for k, x := range all {
		if err := checkSquareMatrix(names[k], x, w); err != nil {
			return nil, err
		}
		for i, row := range x {
			for j, v := range row {
				if v < 0 && (k > 0 || i != j) {
					return nil, fmt.Errorf("%s[%d][%d]: rate %g is negative", names[k], i, j, v)
				}
			}
		}
		out[k] = fromRows(x)
	}
	for i := range w {
		sum := 0.0
		for k := range out {
			for j, v := range out[k].row(i) {
				if k > 0 || j != i {
					sum += v
				}
			}
		}
		if math.IsInf(sum, 0) {
			return nil, fmt.Errorf("%s: the rates of row %d are too large", names[0], i)
		}
		if d := all[0][i][i]; math.Abs(d+sum) > slack*max(sum, math.Abs(d)) {
			return nil, fmt.Errorf("%s[%d][%d]: %g, want %g so that the row sums to 0 over all matrices", names[0], i, i, d, -sum)
		}
		out[0].set(i, i, -sum)
	}
	return out, nil
}

// checkSquareMatrix checks a matrix of w rows and columns of finite numbers.
func checkSquareMatrix(name string, x [][]float64, w int) error {
	if len(x) != w {
		return fmt.Errorf("%s: %d rows, want %d", name, len(x), w)
	}
	for i, row := range x {
		if len(row) != w {
			return fmt.Errorf("%s[%d]: %d entries, want %d", name, i, len(row), w)
		}
		for j, v := range row {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%s[%d][%d]: not a finite number", name, i, j)
			}
			if a := math.Abs(v); v != 0 && (a < minNumber || a > maxNumber) {
				return fmt.Errorf("%s[%d][%d]: %g is outside %g to %g: choose another unit of time", name, i, j, v, minNumber, maxNumber)
			}
		}
	}
	return nil
}

// phaseType checks an initial law and the rates within, and returns them with
// the rates out.
func phaseType(aName, tName string, a []float64, t [][]float64) (alpha, rates, out mat, err error) {
	if len(a) == 0 {
		return alpha, rates, out, fmt.Errorf("%s: missing or empty", aName)
	}
	sum := 0.0
	for i, v := range a {
		if !(v >= 0 && v <= 1+slack) {
			return alpha, rates, out, fmt.Errorf("%s[%d]: %g is no probability", aName, i, v)
		}
		sum += v
	}
	if math.Abs(sum-1) > slack {
		return alpha, rates, out, fmt.Errorf("%s: the sum is %g, not 1", aName, sum)
	}
	if err := checkSquareMatrix(tName, t, len(a)); err != nil {
		return alpha, rates, out, err
	}
	alpha = rowVector(append([]float64(nil), a...)).scaleInPlace(1 / sum)
	rates, out = fromRows(t), zeroMatrix(len(a), 1)
	for i, row := range t {
		within := 0.0
		for j, v := range row {
			if i == j {
				continue
			}
			if v < 0 {
				return alpha, rates, out, fmt.Errorf("%s[%d][%d]: rate %g is negative", tName, i, j, v)
			}
			within += v
		}
		if math.IsInf(within, 0) {
			return alpha, rates, out, fmt.Errorf("%s[%d]: the rates are too large", tName, i)
		}
		switch e := -row[i] - within; {
		case row[i] > 0:
			return alpha, rates, out, fmt.Errorf("%s[%d][%d]: %g on the diagonal is positive", tName, i, i, row[i])
		case e < -slack*within:
			return alpha, rates, out, fmt.Errorf("%s[%d]: the row sums to %g, more than 0", tName, i, -e)
		case e > slack*within:
			out.set(i, 0, e)
		}
		rates.set(i, i, -within-out.at(i, 0))
	}
	return alpha, rates, out, nil
}

// neverEnds returns a phase from which no way leads out, or -1.
func neverEnds(t, out mat) int {
	ends := make([]bool, t.r)
	for range t.r {
		for i := range ends {
			for j, v := range t.row(i) {
				ends[i] = ends[i] || out.at(i, 0) > 0 || (j != i && v > 0 && ends[j])
			}
		}
	}
	for i, e := range ends {
		if !e {
			return i
		}
	}
	return -1
}
