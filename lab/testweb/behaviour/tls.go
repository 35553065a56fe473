package behaviour

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
