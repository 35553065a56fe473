package behaviour

import "github.com/freshet/freshet/lab/testweb/dns"

// DNS is implemented by behaviours that spoil a host's name.
type DNS interface {
	// DNS returns what is wrong with the name of q.Host at q.Now; the zero Fault
	// for nothing.
	DNS(q *Request) dns.Fault
}
