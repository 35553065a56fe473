package postings

import (
	"encoding/binary"
	"math/bits"
)

// BlockSize is the number of values in a full block.
const BlockSize = 128

// varintLimit is the length below which a block is coded as varints: padding
// to groups of eight costs more than bit packing saves there.
const varintLimit = 16

// groupSize is the number of values that are packed together: eight values of
// w bits fill w bytes exactly, so every group begins at a byte.
const groupSize = 8

// AppendBlock appends at most BlockSize values in the patched frame of
// reference code (Zukowski, Héman, Nes, Boncz 2006; Lemire, Boytsov 2015) and
// returns the extended slice. Fewer than 16 values become varints. Otherwise:
//
//	byte 0    width w of a packed value in bits, 0 to 32
//	byte 1    number of exceptions e
//	packed    ceil(n/8) groups of eight w-bit values, w bytes each, little endian
//	e times   index of the value (1 byte), its bits above w (varint)
//
// The width is the one that gives the fewest bytes.
func AppendBlock(dst []byte, values []uint32) []byte {
	if len(values) < varintLimit {
		for _, v := range values {
			dst = binary.AppendUvarint(dst, uint64(v))
		}
		return dst
	}
	width, exceptions := chooseWidth(values)
	dst = append(dst, byte(width), byte(exceptions))
	dst = packGroups(dst, values, width)
	if exceptions == 0 {
		return dst
	}
	for i, v := range values {
		if high := uint64(v) >> width; high != 0 {
			dst = append(dst, byte(i))
			dst = binary.AppendUvarint(dst, high)
		}
	}
	return dst
}

// chooseWidth returns the width with the shortest code and how many values
// exceed it. An exception takes a byte for its index and one for every seven bits
// above the width, so its cost is a sum over the numbers of values longer than w,
// w+7, w+14 and so on.
func chooseWidth(values []uint32) (width, exceptions int) {
	var lengths [33]int // values by their length in bits
	all := uint32(0)
	for _, v := range values {
		lengths[bits.Len32(v)]++
		all |= v
	}
	longest := bits.Len32(all)
	groups := (len(values) + groupSize - 1) / groupSize
	width = longest
	best := groups * longest
	var longer [33 + 28]int // values longer than so many bits
	for w := longest - 1; w >= 0; w-- {
		longer[w] = longer[w+1] + lengths[w+1]
		cost := groups*w + 2*longer[w] + longer[w+7] + longer[w+14] + longer[w+21] + longer[w+28]
		if cost < best {
			best, width, exceptions = cost, w, longer[w]
		}
	}
	return width, exceptions
}

// packGroups appends the low width bits of all values.
func packGroups(dst []byte, values []uint32, width int) []byte {
	if width == 0 {
		return dst
	}
	mask := uint64(1)<<width - 1
	var held uint64 // bits not yet written
	count := 0
	padded := (len(values) + groupSize - 1) / groupSize * groupSize
	for i := range padded {
		if i < len(values) {
			held |= (uint64(values[i]) & mask) << count
		}
		for count += width; count >= 8; count -= 8 {
			dst = append(dst, byte(held))
			held >>= 8
		}
	}
	return dst
}

// DecodeBlock reads n values that AppendBlock wrote at the beginning of src
// and returns the number of bytes read, or -1 for damaged data. Bytes of src
// behind the block are ignored; eight of them make it faster.
func DecodeBlock(src []byte, out *[BlockSize]uint32, n int) int {
	if n < varintLimit {
		return decodeVarints(src, out, n)
	}
	if len(src) < 2 || n > BlockSize || src[0] > 32 {
		return -1
	}
	width, exceptions := int(src[0]), int(src[1])
	groups := (n + groupSize - 1) / groupSize
	size := 2 + groups*width
	if size > len(src) {
		return -1
	}
	if size+8 <= len(src) {
		unpackGroups(src[2:size+8], out, groups, width)
	} else {
		var padded [BlockSize*4 + 8]byte
		copy(padded[:], src[2:size])
		unpackGroups(padded[:groups*width+8], out, groups, width)
	}
	for range exceptions {
		if size >= len(src) {
			return -1
		}
		i := src[size]
		high, k := binary.Uvarint(src[size+1:])
		if k <= 0 || int(i) >= n || high > 1<<32-1 {
			return -1
		}
		out[i] |= uint32(high << width)
		size += 1 + k
	}
	return size
}

func decodeVarints(src []byte, out *[BlockSize]uint32, n int) int {
	size := 0
	for i := range n {
		if size < len(src) && src[size] < 0x80 {
			out[i] = uint32(src[size])
			size++
			continue
		}
		v, k := binary.Uvarint(src[min(size, len(src)):])
		if k <= 0 || v > 1<<32-1 {
			return -1
		}
		out[i] = uint32(v)
		size += k
	}
	return size
}

// unpackGroups reads groups of eight values of width bits. src has eight bytes
// more than the groups fill.
func unpackGroups(src []byte, out *[BlockSize]uint32, groups, width int) {
	if width == 0 {
		clear(out[:groups*groupSize])
		return
	}
	mask := uint64(1)<<width - 1
	w := uint(width)
	if width <= 7 { // all eight values of a group are in one word
		for g := range groups {
			o := (*[groupSize]uint32)(out[g*groupSize:])
			v := binary.LittleEndian.Uint64(src[g*width:])
			o[0] = uint32(v & mask)
			o[1] = uint32(v >> (w & 63) & mask)
			o[2] = uint32(v >> (2 * w & 63) & mask)
			o[3] = uint32(v >> (3 * w & 63) & mask)
			o[4] = uint32(v >> (4 * w & 63) & mask)
			o[5] = uint32(v >> (5 * w & 63) & mask)
			o[6] = uint32(v >> (6 * w & 63) & mask)
			o[7] = uint32(v >> (7 * w & 63) & mask)
		}
		return
	}
	for g := range groups {
		o := (*[groupSize]uint32)(out[g*groupSize:])
		group := src[g*width : g*width+width+8]
		o[0] = uint32(binary.LittleEndian.Uint64(group) & mask)
		o[1] = uint32(binary.LittleEndian.Uint64(group[w>>3:]) >> (w & 7) & mask)
		o[2] = uint32(binary.LittleEndian.Uint64(group[2*w>>3:]) >> (2 * w & 7) & mask)
		o[3] = uint32(binary.LittleEndian.Uint64(group[3*w>>3:]) >> (3 * w & 7) & mask)
		o[4] = uint32(binary.LittleEndian.Uint64(group[4*w>>3:]) >> (4 * w & 7) & mask)
		o[5] = uint32(binary.LittleEndian.Uint64(group[5*w>>3:]) >> (5 * w & 7) & mask)
		o[6] = uint32(binary.LittleEndian.Uint64(group[6*w>>3:]) >> (6 * w & 7) & mask)
		o[7] = uint32(binary.LittleEndian.Uint64(group[7*w>>3:]) >> (7 * w & 7) & mask)
	}
}
