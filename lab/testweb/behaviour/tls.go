package behaviour

import (
	"errors"
	"maps"
	"slices"
)

// TLSFault is what is wrong with a host's TLS.
type TLSFault uint8

// The faults of TLS.
const (
	TLSFine TLSFault = iota
	TLSExpired
	TLSWrongName
	TLSSelfSigned
	TLSRefused // the handshake fails
)

// TLS is implemented by behaviours that spoil a host's TLS.
type TLS interface {
	// TLS returns the fault of q.Host at q.Now; the path is not known yet.
	TLS(q *Request) TLSFault
}

// badTLS spoils the certificates of hosts.
type badTLS struct {
	Scope  `yaml:",inline"`
	Faults []string `yaml:"faults"` // drawn by host
}

// tlsFaults are the names of the faults.
var tlsFaults = map[string]TLSFault{
	"expired": TLSExpired, "wrong-name": TLSWrongName, "self-signed": TLSSelfSigned, "refused": TLSRefused,
}

func newBadTLS() *badTLS {
	return &badTLS{Scope{Hosts: .05, Pages: 1}, slices.Sorted(maps.Keys(tlsFaults))}
}

func (b *badTLS) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requireKnown(b.Faults, newBadTLS().Faults))
}

// Apply implements Behaviour: the pages are in order.
func (b *badTLS) Apply(*Request, *Reply) bool { return false }

// TLS implements TLS.
func (b *badTLS) TLS(q *Request) TLSFault {
	if !b.ofHost(q) {
		return TLSFine
	}
	return tlsFaults[b.Faults[b.drawBits(q, q.Host)>>32%uint64(len(b.Faults))]]
}
