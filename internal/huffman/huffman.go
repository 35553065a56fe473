// Package huffman finds the lengths of the words of prefix codes: how many bits
// each symbol should take, so that all together take the fewest (Huffman 1952), with
// no word longer than a reader's table allows. From the lengths alone writer and
// reader number the words alike (canonical codes), each in its own format.
package huffman

import (
	"cmp"
	"math/bits"
	"slices"
)

// Lengths returns the length of the word of each symbol in the best prefix code
// without words longer than limit, by package-merge (Larmore and Hirschberg,
// JACM 1990) in time len(weights) * limit. Every symbol gets a word, however small its
// weight; a single one gets a bit. A limit that no code can meet is raised to the
// least that one does.
func Lengths[W ~uint32 | ~uint64](weights []W, limit int) []uint8 {
	n := len(weights)
	lengths := make([]uint8, n)
	if n < 2 {
		for i := range lengths {
			lengths[i] = 1
		}
		return lengths
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(weights[a], weights[b]), a-b) })
	single := packageRows(weights, order, max(limit, bits.Len(uint(n-1))))
	// The lightest 2n-2 things of the last row make the code. The length of a word is
	// the number of rows in which its symbol is among those taken, alone or in pairs.
	for take, l := 2*n-2, len(single)-1; take > 0; l-- {
		singles := 0
		for _, is := range single[l][:take] {
			if is {
				lengths[order[singles]]++
				singles++
			}
		}
		take = 2 * (take - singles)
	}
	return lengths
}

// packageRows lists, for each length, symbols and pairs of things of the row before by
// weight, and returns which of them are symbols.
func packageRows[W ~uint32 | ~uint64](weights []W, order []int, limit int) [][]bool {
	n := len(order)
	leaves := make([]uint64, n)
	for i, k := range order {
		leaves[i] = uint64(weights[k])
	}
	single := make([][]bool, limit)
	kinds := make([]bool, 2*n*limit) // a row has less than 2n things
	row, before := make([]uint64, 2*n), make([]uint64, 0, 2*n)
	for l := range single {
		kind := kinds[2*n*l : 2*n*(l+1)]
		row = row[:2*n]
		at := 0
		for i, j := 0, 0; i < n || j+1 < len(before); at++ {
			alone := j+1 >= len(before)
			if !alone && i < n {
				alone = leaves[i] <= before[j]+before[j+1]
			}
			if alone {
				row[at] = leaves[i]
				i++
			} else {
				row[at] = before[j] + before[j+1]
				j += 2
			}
			kind[at] = alone
		}
		single[l] = kind[:at]
		row, before = before, row[:at]
	}
	return single
}
