package behaviour

import (
	"errors"
	"time"

	"github.com/freshet/freshet/lab/testweb/dns"
)

// DNS is implemented by behaviours that spoil a host's name.
type DNS interface {
	// DNS returns what is wrong with the name of q.Host at q.Now; the zero Fault
	// for nothing.
	DNS(q *Request) dns.Fault
}

// badDNS spoils the names of hosts.
type badDNS struct {
	Scope  `yaml:",inline"`
	Faults []string `yaml:"faults"` // drawn by host
	Delay  duration `yaml:"delay"`  // of the fault slow
}

func newBadDNS() *badDNS {
	return &badDNS{Scope{Hosts: .05, Pages: 1}, []string{"nxdomain", "servfail", "slow", "cname", "drop"}, duration(2 * time.Second)}
}

func (b *badDNS) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requireKnown(b.Faults, newBadDNS().Faults), notNegative("delay", float64(b.Delay)))
}

// Apply implements Behaviour: the pages are in order.
func (b *badDNS) Apply(*Request, *Reply) bool { return false }

// DNS implements DNS.
func (b *badDNS) DNS(q *Request) dns.Fault {
	if !b.ofHost(q) {
		return dns.Fault{}
	}
	switch b.Faults[b.drawBits(q, q.Host)>>32%uint64(len(b.Faults))] {
	case "nxdomain":
		return dns.Fault{NXDomain: true}
	case "servfail":
		return dns.Fault{ServFail: true}
	case "slow":
		return dns.Fault{Delay: time.Duration(b.Delay)}
	case "cname":
		return dns.Fault{CNAME: true}
	}
	return dns.Fault{Drop: true}
}
