package dns

import (
	"fmt"

	"golang.org/x/net/dns/dnsmessage"
)

// packAnswer appends an answer to dst. One longer than size goes out empty with the
// bit that sends the asker to TCP.
func packAnswer(dst []byte, h dnsmessage.Header, q *dnsmessage.Question, a *answer, edns bool, size int) ([]byte, error) {
	out, err := buildMessage(dst, h, q, a, edns)
	if err == nil && len(out)-len(dst) > size {
		h.Truncated = true
		out, err = buildMessage(dst, h, q, nil, edns)
	}
	if err != nil {
		return dst, fmt.Errorf("DNS answer: %w", err)
	}
	return out, nil
}

func buildMessage(dst []byte, h dnsmessage.Header, q *dnsmessage.Question, a *answer, edns bool) ([]byte, error) {
	low := h
	low.RCode &= 15 // the rest stands in the OPT record
	b := dnsmessage.NewBuilder(dst, low)
	b.EnableCompression()
	if err := b.StartQuestions(); err != nil {
		return nil, err
	}
	if q != nil {
		if err := b.Question(*q); err != nil {
			return nil, err
		}
	}
	if a != nil {
		if err := a.buildRecords(&b, q); err != nil {
			return nil, err
		}
	}
	if edns {
		if err := b.StartAdditionals(); err != nil {
			return nil, err
		}
		var opt dnsmessage.ResourceHeader
		if err := opt.SetEDNS0(udpSize, h.RCode, false); err != nil {
			return nil, err
		}
		if err := b.OPTResource(opt, dnsmessage.OPTResource{}); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}

// buildRecords writes the answer's records, or the SOA that says there are none.
func (a *answer) buildRecords(b *dnsmessage.Builder, q *dnsmessage.Question) error {
	if err := b.StartAnswers(); err != nil {
		return err
	}
	h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: a.ttl}
	n := 0
	if a.alias != "" {
		to, err := dnsmessage.NewName(a.alias)
		if err != nil {
			return err
		}
		if err := b.CNAMEResource(h, dnsmessage.CNAMEResource{CNAME: to}); err != nil {
			return err
		}
		h.Name = to
		n++
	}
	var err error
	switch {
	case a.address.Is4():
		err = b.AResource(h, dnsmessage.AResource{A: a.address.As4()})
	case a.address.Is6():
		err = b.AAAAResource(h, dnsmessage.AAAAResource{AAAA: a.address.As16()})
	case a.ptr != "":
		var to dnsmessage.Name
		if to, err = dnsmessage.NewName(a.ptr); err == nil {
			err = b.PTRResource(h, dnsmessage.PTRResource{PTR: to})
		}
	case a.ns:
		var to dnsmessage.Name
		if to, err = dnsmessage.NewName("ns1." + a.zone); err == nil {
			err = b.NSResource(h, dnsmessage.NSResource{NS: to})
		}
	case a.soa:
		err = a.buildSOA(b, h)
	default:
		if n > 0 || a.rcode == dnsmessage.RCodeServerFailure {
			return nil
		}
		if err := b.StartAuthorities(); err != nil {
			return err
		}
		if h.Name, err = dnsmessage.NewName(a.zone); err == nil {
			err = a.buildSOA(b, h)
		}
	}
	return err
}

// buildSOA writes the SOA of the answer's zone.
func (a *answer) buildSOA(b *dnsmessage.Builder, h dnsmessage.ResourceHeader) error {
	ns, err := dnsmessage.NewName("ns1." + a.zone)
	if err != nil {
		return err
	}
	mbox, err := dnsmessage.NewName("hostmaster." + a.zone)
	if err != nil {
		return err
	}
	return b.SOAResource(h, dnsmessage.SOAResource{
		NS: ns, MBox: mbox, Serial: 1, Refresh: 7200, Retry: 900, Expire: 1209600, MinTTL: a.ttl,
	})
}
