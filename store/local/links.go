package local

import (
	"encoding/binary"
	"slices"

	"github.com/freshet/freshet/weburl"
)

// Links of a page are mostly to few hosts, whose hashes are half of each key: a
// packed list has every host once. It begins with the counts of hosts and links;
// then come the hosts' hashes, and for each link the number of its host and the
// rest of the key. Its length is no multiple of 16, if need be by a zero at the
// end: lists whose length is one are plain keys, as format 1 has them all.

// mostLinkHosts is to how many hosts links are looked for in turn; lists with more
// are plain.
const mostLinkHosts = 32

const (
	linkLength  = 16
	packedLink  = 9
	hashesEnd   = 8
	countsRoom  = 2 * binary.MaxVarintLen32
	paddingByte = 0
)

// appendLinks appends a list of links.
func appendLinks(b []byte, links []weburl.Key) []byte {
	if len(links) == 0 {
		return b
	}
	var room [mostLinkHosts]hostKey
	var last int
	hosts := room[:0]
	start := len(b)
	b = slices.Grow(b, countsRoom+len(room)*hashesEnd+linkLength*len(links))
	of := make([]byte, 0, 256)
	for i := range links {
		h := hostKey(links[i][:hashesEnd])
		if len(hosts) == 0 || hosts[last] != h {
			if last = slices.Index(hosts, h); last < 0 {
				if last = len(hosts); last == mostLinkHosts {
					return appendPlain(b, links)
				}
				hosts = append(hosts, h)
			}
		}
		of = append(of, byte(last))
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(len(hosts))), uint64(len(links)))
	for i := range hosts {
		b = append(b, hosts[i][:]...)
	}
	for i := range links {
		b = append(append(b, of[i]), links[i][hashesEnd:]...)
	}
	if (len(b)-start)%linkLength == 0 {
		b = append(b, paddingByte)
	}
	return b
}

func appendPlain(b []byte, links []weburl.Key) []byte {
	for i := range links {
		b = append(b, links[i][:]...)
	}
	return b
}

// decodeLinks appends the links of a list.
func decodeLinks(to []weburl.Key, v []byte) ([]weburl.Key, error) {
	if len(v)%linkLength == 0 {
		for ; len(v) > 0; v = v[linkLength:] {
			to = append(to, weburl.Key(v[:linkLength]))
		}
		return to, nil
	}
	hosts, n := binary.Uvarint(v)
	v = v[max(0, n):]
	links, m := binary.Uvarint(v)
	v = v[max(0, m):]
	size := uint64(len(v))
	if n <= 0 || m <= 0 || hosts > mostLinkHosts || links > size/packedLink || hosts*hashesEnd+links*packedLink != size &&
		hosts*hashesEnd+links*packedLink+1 != size {
		return to, errRecord
	}
	hashes, v := v[:hosts*hashesEnd], v[hosts*hashesEnd:]
	for ; links > 0; links-- {
		h := int(v[0]) * hashesEnd
		if h >= len(hashes) {
			return to, errRecord
		}
		var k weburl.Key
		copy(k[:], hashes[h:h+hashesEnd])
		copy(k[hashesEnd:], v[1:packedLink])
		to = append(to, k)
		v = v[packedLink:]
	}
	return to, nil
}
