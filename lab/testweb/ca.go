package testweb

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/freshet/freshet/lab/testweb/behaviour"
)

// leafCache is the greatest number of certificates kept, about 2 KB each.
const leafCache = 1 << 16

// authority is a local certificate authority: it signs a certificate for each
// name that is asked for and keeps it. All leaves share one key, so a new one
// costs a signature.
type authority struct {
	cert  *x509.Certificate
	der   []byte
	key   crypto.Signer
	leaf  crypto.Signer
	mu    sync.Mutex
	cache map[leafKey]*tls.Certificate
}

// leafKey names a certificate: the host and what is wrong with it.
type leafKey struct {
	name  string
	fault behaviour.TLSFault
}

// newAuthority makes an authority with a new key.
func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("test web: make the key of the certificate authority: %w", err)
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("test web: make the key of the certificates: %w", err)
	}
	now := time.Now()
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Freshet test web"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("test web: make the certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("test web: make the certificate authority: %w", err)
	}
	return &authority{cert: cert, der: der, key: key, leaf: leaf, cache: map[leafKey]*tls.Certificate{}}, nil
}

// PEM returns the authority's certificate for a robot's list of trusted ones.
func (a *authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.der})
}

// certificateFor returns the certificate of a name with a fault.
func (a *authority) certificateFor(k leafKey) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.cache[k]; c != nil {
		return c, nil
	}
	c, err := a.mintCertificate(k)
	if err != nil {
		return nil, fmt.Errorf("test web: certificate of %s: %w", k.name, err)
	}
	if len(a.cache) >= leafCache {
		for old := range a.cache { // any one: robots come back to all hosts alike
			delete(a.cache, old)
			break
		}
	}
	a.cache[k] = c
	return c, nil
}

func (a *authority) mintCertificate(k leafKey) (*tls.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: k.name},
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip, err := netip.ParseAddr(k.name); err == nil {
		tmpl.IPAddresses = []net.IP{ip.AsSlice()}
	} else {
		tmpl.DNSNames = []string{k.name}
	}
	parent, signer := a.cert, a.key
	switch k.fault {
	case behaviour.TLSExpired:
		tmpl.NotBefore, tmpl.NotAfter = a.cert.NotBefore.AddDate(-2, 0, 0), a.cert.NotBefore.AddDate(-1, 0, 0)
	case behaviour.TLSWrongName:
		tmpl.DNSNames = []string{"www.example.invalid"}
	case behaviour.TLSSelfSigned:
		parent, signer = tmpl, a.leaf
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, a.leaf.Public(), signer)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.leaf}, nil
}

// tlsConfig returns the TLS side of the server.
func (s *Server) tlsConfig() *tls.Config {
	return &tls.Config{
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			dns := hello.ServerName
			if dns == "" { // by address: a certificate for the address
				dns = addrOf(hello.Conn.LocalAddr()).String()
			}
			host, ok := s.Host(dns)
			if !ok {
				return s.ca.certificateFor(leafKey{name: dns})
			}
			fault := s.tlsFault(host)
			if fault == behaviour.TLSRefused {
				return nil, fmt.Errorf("%s refuses TLS, as configured", dns)
			}
			return s.ca.certificateFor(leafKey{dns, fault})
		},
	}
}

// tlsFault asks the behaviours what is wrong with a host's TLS.
func (s *Server) tlsFault(host uint64) behaviour.TLSFault {
	q := behaviour.Request{World: s.Web, Seed: s.seed, Host: host, Now: s.Now()}
	for _, b := range s.behaviour {
		if t, ok := b.Behaviour.(behaviour.TLS); ok {
			if f := t.TLS(&q); f != behaviour.TLSFine {
				return f
			}
		}
	}
	return behaviour.TLSFine
}

// addrOf returns the address in a net.Addr of a TCP connection.
func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
