// Package name maps the hosts and documents of a synthetic web to names and
// back, without a table: host number <-> IPv4 address <-> DNS name, document
// number <-> file name. Both directions cost nanoseconds, so a web of 2^42
// pages needs no zone file.
//
// Host numbers are dense: 0 is the first address that is not reserved
// (1.0.0.0), and blocks no public host may have (RFC 6890: private, loopback,
// multicast and so on) are skipped.
package name

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sort"
	"strings"
)

// reserved are the blocks of RFC 6890 that are not globally reachable, in
// ascending order and disjoint.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.31.196.0/24"),
	netip.MustParsePrefix("192.52.193.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("192.175.48.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("224.0.0.0/3"),
}

// run is a block of usable addresses: first..first+size-1 have the host
// numbers base..base+size-1.
type run struct{ first, size, base uint64 }

var usable = usableRuns()

func usableRuns() []run {
	var runs []run
	next, base := uint64(0), uint64(0)
	for _, p := range reserved {
		first := uint64(addressBits(p.Addr()))
		if first > next {
			runs = append(runs, run{next, first - next, base})
			base += first - next
		}
		next = first + 1<<(32-p.Bits())
	}
	return runs
}

func addressBits(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

// Hosts is the number of addresses that a host may have, about 3.7e9.
func Hosts() uint64 {
	last := usable[len(usable)-1]
	return last.base + last.size
}

// Addr returns the IPv4 address of a host number. It panics if host >= Hosts():
// the caller has checked the size of the web.
func Addr(host uint64) netip.Addr {
	i := sort.Search(len(usable), func(i int) bool { return usable[i].base > host }) - 1
	r := usable[i]
	if host-r.base >= r.size {
		panic(fmt.Sprintf("name: host %d of %d", host, Hosts()))
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(r.first+host-r.base))
	return netip.AddrFrom4(b)
}

// Host returns the host number of an IPv4 address, or of an IPv6 address made
// by Addr6; ok is false for reserved and foreign ones.
func Host(a netip.Addr) (host uint64, ok bool) {
	a = a.Unmap()
	if a.Is6() {
		b := a.As16()
		if [12]byte(b[:12]) != prefix6 {
			return 0, false
		}
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if !a.Is4() {
		return 0, false
	}
	n := uint64(addressBits(a))
	i := sort.Search(len(usable), func(i int) bool { return usable[i].first > n }) - 1
	if i < 0 || n-usable[i].first >= usable[i].size {
		return 0, false
	}
	return usable[i].base + n - usable[i].first, true
}

// prefix6 is the /96 that holds the IPv6 addresses of all hosts: global
// unicast, so that a robot's guard against private addresses lets it pass.
var prefix6 = [12]byte{0x2a, 0x0f, 0xf4, 0xe5, 0, 0x7e, 0x57}

// Addr6 returns the IPv6 address of a host: a /96 prefix and its IPv4 address.
func Addr6(host uint64) netip.Addr {
	var b [16]byte
	copy(b[:], prefix6[:])
	a := Addr(host).As4()
	copy(b[12:], a[:])
	return netip.AddrFrom16(b)
}

// Scheme says how addresses become names. The zero value is the default form
// www.aabbccdd.cz, the address in hexadecimal under the parent domain.
type Scheme struct {
	// Parent is the domain under which all hosts stand, "cz" if empty.
	Parent string
	// Dotted spells www.aa.bb.cc.dd.cz, as the 2008 thesis did. Its registrable
	// domain is dd.cz: a robot polite per domain sees 256 sites in all.
	Dotted bool
}

// Domain returns the parent domain.
func (s Scheme) Domain() string {
	if s.Parent == "" {
		return "cz"
	}
	return s.Parent
}

// Check reports whether the parent domain can stand in a DNS name.
func (s Scheme) Check() error {
	d := s.Domain()
	if len(d) > 200 {
		return fmt.Errorf("parent domain of %d bytes: at most 200", len(d))
	}
	for label := range strings.SplitSeq(d, ".") {
		if label == "" || len(label) > 63 {
			return fmt.Errorf("parent domain %q: empty or overlong label", d)
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return fmt.Errorf("parent domain %q: %q may not stand in it (lower-case letters, digits, '-')", d, c)
			}
		}
	}
	return nil
}

const hexDigits = "0123456789abcdef"

// Append appends the DNS name of a host to dst.
func (s Scheme) Append(dst []byte, host uint64) []byte {
	a := Addr(host).As4()
	dst = append(dst, "www"...)
	for i, b := range a {
		if i == 0 || s.Dotted {
			dst = append(dst, '.')
		}
		dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
	}
	dst = append(dst, '.')
	return append(dst, s.Domain()...)
}

// Name returns the DNS name of a host.
func (s Scheme) Name(host uint64) string { return string(s.Append(nil, host)) }

// Parse returns the host number of a DNS name, in any case and with or without
// the final dot. ok is false for names that no host has. It does not allocate.
func (s Scheme) Parse(name string) (host uint64, ok bool) {
	name = strings.TrimSuffix(name, ".")
	d := s.Domain()
	i := len(name) - len(d)
	if i < 5 || !strings.EqualFold(name[i:], d) || name[i-1] != '.' || !strings.EqualFold(name[:4], "www.") {
		return 0, false
	}
	label := name[4 : i-1]
	var b [4]byte
	width := 2
	if s.Dotted {
		width = 3
	}
	if len(label) != 4*width-(width-2) {
		return 0, false
	}
	for k := range b {
		hi, lo := hexDigit(label[k*width]), hexDigit(label[k*width+1])
		if hi > 15 || lo > 15 || s.Dotted && k < 3 && label[k*width+2] != '.' {
			return 0, false
		}
		b[k] = hi<<4 | lo
	}
	return Host(netip.AddrFrom4(b))
}

func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
