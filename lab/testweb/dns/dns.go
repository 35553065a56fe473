// Package dns answers DNS queries for the hosts of a synthetic web. There are no
// zone files: a name is parsed to a host number and back (package name), so a
// web of 10^9 hosts answers as fast as one of ten.
//
// Answered are A, AAAA, PTR, NS, SOA and CNAME over UDP and TCP (RFC 1035, 7766)
// with EDNS0 (RFC 6891); other types of existing names get the empty answer with
// the zone's SOA (RFC 2308), other names NXDOMAIN. Faults spoil single hosts.
package dns

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/freshet/freshet/lab/testweb/name"
	"golang.org/x/net/dns/dnsmessage"
)

// DefaultTTL is the time to live of all records, in seconds.
const DefaultTTL = 300

// udpSize is the size of UDP answers that the server offers (DNS flag day 2020).
const udpSize = 1232

// Fault is what is wrong with the name of a host.
type Fault struct {
	NXDomain bool
	ServFail bool
	Drop     bool          // no answer at all
	Delay    time.Duration // before the answer
	CNAME    bool          // the name is an alias: cdn-... has the addresses
}

// Zone is the web as DNS sees it.
type Zone struct {
	Names  name.Scheme
	Hosts  uint64
	Answer netip.Addr // the address of every host; zero: its own
	TTL    uint32     // DefaultTTL if 0
	// Fault returns what is wrong with a host now; nil: nothing with any.
	Fault func(host uint64) Fault
}

// aliasPrefix begins the names that hosts with a CNAME are aliases of.
const aliasPrefix = "cdn-"

// errIgnore says that a message deserves no answer.
var errIgnore = errors.New("not a query")

// Reply appends the answer to a query to dst and says how long it is to be
// held back. An error says that nothing is to be sent: what came is not a query
// (to answer an answer would make loops), or a fault drops it.
func (z *Zone) Reply(dst, query []byte, tcp bool) ([]byte, time.Duration, error) {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return dst, 0, errIgnore
	}
	resp := dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, Authoritative: true, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}
	q, err := p.Question()
	if err == nil {
		if _, more := p.Question(); !errors.Is(more, dnsmessage.ErrSectionDone) {
			err = errIgnore
		}
	}
	switch {
	case h.OpCode != 0:
		resp.RCode = dnsmessage.RCodeNotImplemented
		return withoutDelay(packAnswer(dst, resp, nil, nil, false, udpSize))
	case err != nil:
		resp.RCode = dnsmessage.RCodeFormatError
		return withoutDelay(packAnswer(dst, resp, nil, nil, false, udpSize))
	}
	edns, size, err := readOPT(&p)
	if err != nil {
		resp.RCode = dnsmessage.RCodeFormatError
		return withoutDelay(packAnswer(dst, resp, &q, nil, false, udpSize))
	}
	if edns > 0 { // a later version than 0
		resp.RCode = badVersion
		return withoutDelay(packAnswer(dst, resp, &q, nil, true, size))
	}
	if tcp {
		size = 1<<16 - 1
	}
	a := z.resolveQuestion(&q)
	if a.fault.Drop {
		return dst, 0, errIgnore
	}
	resp.RCode = a.rcode
	out, err := packAnswer(dst, resp, &q, &a, edns == 0, size)
	return out, a.fault.Delay, err
}

// withoutDelay is for answers that no fault delays.
func withoutDelay(msg []byte, err error) ([]byte, time.Duration, error) { return msg, 0, err }

// badVersion is BADVERS of RFC 6891, 6.1.3: its upper bits stand in the OPT record.
const badVersion dnsmessage.RCode = 16

// readOPT reads the OPT record of a query: its version, -1 if there is none, and
// the size of answer that the asker takes.
func readOPT(p *dnsmessage.Parser) (version, size int, err error) {
	version, size = -1, 512
	if err := p.SkipAllAnswers(); err != nil {
		return 0, 0, err
	}
	if err := p.SkipAllAuthorities(); err != nil {
		return 0, 0, err
	}
	for {
		h, err := p.AdditionalHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return version, size, nil
		}
		if err != nil {
			return 0, 0, err
		}
		if h.Type == dnsmessage.TypeOPT {
			if version >= 0 {
				return 0, 0, errors.New("two OPT records")
			}
			version, size = int(h.TTL>>16&0xff), max(int(h.Class), 512)
		}
		if err := p.SkipAdditional(); err != nil {
			return 0, 0, err
		}
	}
}

// answer is what the zone knows of a question.
type answer struct {
	rcode   dnsmessage.RCode
	fault   Fault
	alias   string // CNAME of the name asked for
	address netip.Addr
	ptr     string
	ns, soa bool
	zone    string
	ttl     uint32
}

func (z *Zone) resolveQuestion(q *dnsmessage.Question) answer {
	a := answer{zone: z.Names.Domain() + ".", ttl: z.TTL}
	if a.ttl == 0 {
		a.ttl = DefaultTTL
	}
	asked := strings.TrimSuffix(q.Name.String(), ".")
	alias := len(asked) > len(aliasPrefix) && strings.EqualFold(asked[:len(aliasPrefix)], aliasPrefix)
	if alias {
		asked = asked[len(aliasPrefix):]
	}
	host, ok := z.Names.Parse(asked)
	switch {
	case ok && host < z.Hosts:
		z.answerHost(&a, q, host, asked, alias)
	case strings.EqualFold(asked, z.Names.Domain()):
		a.ns, a.soa = q.Type == dnsmessage.TypeNS, q.Type == dnsmessage.TypeSOA
	case strings.EqualFold(asked, "ns1."+z.Names.Domain()):
		z.answerAddresses(&a, q.Type, nameserver, nameserver6)
	case strings.EqualFold(asked, "localhost"):
		z.answerAddresses(&a, q.Type, netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback())
	default:
		z.answerReverse(&a, q, asked)
	}
	return a
}

// The addresses of the zone's name server, like those of a public resolver.
var (
	nameserver  = netip.AddrFrom4([4]byte{9, 9, 9, 9})
	nameserver6 = netip.MustParseAddr("2620:fe::9")
)

// answerHost answers for a host of the web.
func (z *Zone) answerHost(a *answer, q *dnsmessage.Question, host uint64, asked string, alias bool) {
	if z.Fault != nil {
		a.fault = z.Fault(host)
	}
	switch {
	case a.fault.NXDomain:
		a.rcode = dnsmessage.RCodeNameError
		return
	case a.fault.ServFail:
		a.rcode = dnsmessage.RCodeServerFailure
		return
	case a.fault.CNAME && !alias:
		a.alias = aliasPrefix + asked + "."
	case alias && !a.fault.CNAME:
		a.rcode = dnsmessage.RCodeNameError
		return
	}
	z.answerAddresses(a, q.Type, name.Addr(host), name.Addr6(host))
}

// answerAddresses answers A and AAAA.
func (z *Zone) answerAddresses(a *answer, t dnsmessage.Type, v4, v6 netip.Addr) {
	if z.Answer.IsValid() {
		v4, v6 = netip.Addr{}, netip.Addr{}
		if z.Answer.Is4() {
			v4 = z.Answer
		} else {
			v6 = z.Answer
		}
	}
	switch t {
	case dnsmessage.TypeA, dnsmessage.TypeALL:
		a.address = v4
	case dnsmessage.TypeAAAA:
		a.address = v6
	}
}

// answerReverse answers for in-addr.arpa and ip6.arpa, and NXDOMAIN for the rest.
func (z *Zone) answerReverse(a *answer, q *dnsmessage.Question, asked string) {
	a.rcode = dnsmessage.RCodeNameError
	ip, zone := reverseAddr(strings.ToLower(asked))
	if !ip.IsValid() {
		return
	}
	a.zone = zone
	if host, ok := name.Host(ip); ok && host < z.Hosts {
		a.rcode = dnsmessage.RCodeSuccess
		if q.Type == dnsmessage.TypePTR {
			a.ptr = z.Names.Name(host) + "."
		}
	}
}

// reverseAddr returns the address that a reverse name spells, and its zone.
func reverseAddr(s string) (netip.Addr, string) {
	if rest, ok := strings.CutSuffix(s, ".in-addr.arpa"); ok {
		parts := strings.Split(rest, ".")
		if len(parts) != 4 {
			return netip.Addr{}, ""
		}
		ip, err := netip.ParseAddr(parts[3] + "." + parts[2] + "." + parts[1] + "." + parts[0])
		if err != nil {
			return netip.Addr{}, ""
		}
		return ip, "in-addr.arpa."
	}
	rest, ok := strings.CutSuffix(s, ".ip6.arpa")
	if !ok || len(rest) != 63 {
		return netip.Addr{}, ""
	}
	var digits [32]byte
	for i := range digits {
		digits[i] = rest[62-2*i]
		if i > 0 && rest[63-2*i] != '.' {
			return netip.Addr{}, ""
		}
	}
	var b [16]byte
	if _, err := hex.Decode(b[:], digits[:]); err != nil {
		return netip.Addr{}, ""
	}
	return netip.AddrFrom16(b), "ip6.arpa."
}
