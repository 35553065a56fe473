package fetch

import (
	"net/netip"
)

// notPublic are networks that are neither loopback, private nor link-local by
// name but not on the internet either: carrier-grade NAT, documentation,
// benchmarking, reserved; and of IPv6 those in which an address of IPv4 is embedded
// that may be any (6to4, Teredo, NAT64, IPv4-compatible, IPv4-translated), and the
// old site-local ones. See IANA's special-purpose address registries. 168.63.129.16
// is the host of a virtual machine in Azure.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("::ffff:0:0:0/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("5f00::/16"), netip.MustParsePrefix("fec0::/10"),
}

// metadata are the addresses at which clouds give their machines credentials, and
// the link-local networks of most of them. No name and no scope permits them: only a
// source that is written with the very address.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd20:ce::/32"), // AWS, Google
	netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("192.0.0.192/32"), netip.MustParsePrefix("168.63.129.16/32"), // Alibaba, Oracle, Azure
}

// embeddings are the networks of IPv6 that hold an address of IPv4 from a byte on.
var embeddings = []struct {
	prefix netip.Prefix
	offset int
}{
	{netip.MustParsePrefix("::/96"), 12}, {netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, {netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2},
}

// Public reports whether an address can belong to a server on the internet.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.Zone() != "" {
		return false
	}
	return !isInside(a, notPublic)
}

// isMetadata reports whether an address, or the address of IPv4 in it, is one that
// only a source of that very address permits.
func isMetadata(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, e := range embeddings {
		if e.prefix.Contains(a) {
			b := a.As16()
			a = netip.AddrFrom4([4]byte(b[e.offset:]))
			break
		}
	}
	return isInside(a, metadata)
}

func isInside(a netip.Addr, networks []netip.Prefix) bool {
	for _, p := range networks {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// mayDial reports whether a host's address may be dialled, with or without
// permission for private addresses.
func mayDial(a netip.Addr, host string, permitted bool) bool {
	if Public(a) || !permitted {
		return Public(a)
	}
	if !isMetadata(a) {
		return true
	}
	written, err := netip.ParseAddr(host)
	return err == nil && written.Unmap() == a.Unmap()
}
