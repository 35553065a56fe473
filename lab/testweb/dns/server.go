package dns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"
)

// Limits on askers who do not behave.
const (
	tcpIdle     = 10 * time.Second // between two queries of a connection
	tcpConns    = 1024             // connections at a time
	heldAnswers = 1 << 14          // delayed answers at a time; more are dropped
)

// Server answers queries on one address over UDP and TCP.
type Server struct {
	zone  Zone
	udp   *net.UDPConn
	tcp   net.Listener
	ctx   context.Context
	stop  context.CancelFunc
	tasks sync.WaitGroup
	conns chan struct{}
	held  chan struct{}
}

// Listen starts to answer for a zone on an address; Close ends it. Port 0 takes
// any port that is free for both protocols. An error is the system's.
func Listen(addr string, zone Zone) (*Server, error) {
	s := &Server{zone: zone, conns: make(chan struct{}, tcpConns), held: make(chan struct{}, heldAnswers)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	var err error
	for range 10 { // a free port of TCP may be taken for UDP
		if err = s.bindSockets(addr); err == nil {
			break
		}
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	for range runtime.GOMAXPROCS(0) {
		s.tasks.Go(s.serveUDP)
	}
	s.tasks.Go(s.serveTCP)
	return s, nil
}

func (s *Server) bindSockets(addr string) error {
	tcp, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.Join(err, tcp.Close())
	}
	port := tcp.Addr().(*net.TCPAddr).Port
	udp, err := net.ListenPacket("udp", net.JoinHostPort(host, fmt.Sprint(port)))
	if err != nil {
		return errors.Join(err, tcp.Close())
	}
	s.tcp, s.udp = tcp, udp.(*net.UDPConn)
	_ = s.udp.SetReadBuffer(4 << 20) // bursts; the kernel may grant less
	return nil
}

// Addr returns the address of both protocols.
func (s *Server) Addr() string { return s.tcp.Addr().String() }

// Close ends the server and waits for its goroutines.
func (s *Server) Close() error {
	s.stop()
	err := errors.Join(s.udp.Close(), s.tcp.Close())
	s.tasks.Wait()
	return err
}

// serveUDP answers datagrams; several goroutines share the socket. It allocates
// little beyond what the message builder needs.
func (s *Server) serveUDP() {
	in, out := make([]byte, 4096), make([]byte, 0, 4096)
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(in)
		if err != nil {
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			continue // an ICMP error of an earlier answer
		}
		msg, delay, err := s.zone.Reply(out[:0], in[:n], false)
		switch {
		case err != nil:
		case delay > 0:
			s.sendLater(append([]byte(nil), msg...), from, delay)
		default:
			_, _ = s.udp.WriteToUDPAddrPort(msg, from)
		}
	}
}

// sendLater sends an answer after a delay, without holding the socket's readers.
func (s *Server) sendLater(msg []byte, to netip.AddrPort, delay time.Duration) {
	select {
	case s.held <- struct{}{}:
	default:
		return
	}
	s.tasks.Go(func() {
		defer func() { <-s.held }()
		if s.sleepOrClosed(delay) {
			_, _ = s.udp.WriteToUDPAddrPort(msg, to)
		}
	})
}

func (s *Server) sleepOrClosed(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

func (s *Server) serveTCP() {
	for {
		conn, err := s.tcp.Accept()
		if err != nil {
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) || !s.sleepOrClosed(10*time.Millisecond) {
				return
			}
			continue
		}
		select {
		case s.conns <- struct{}{}:
			s.tasks.Go(func() {
				defer func() { <-s.conns }()
				s.serveConn(conn)
			})
		default:
			_ = conn.Close()
		}
	}
}

// serveConn answers the queries of a connection, each after two bytes of length.
func (s *Server) serveConn(conn net.Conn) {
	end := context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	defer end()
	defer conn.Close()
	var size [2]byte
	in, out := make([]byte, 1<<16), make([]byte, 0, 4096)
	for {
		_ = conn.SetDeadline(time.Now().Add(tcpIdle))
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		q := in[:binary.BigEndian.Uint16(size[:])]
		if _, err := io.ReadFull(conn, q); err != nil {
			return
		}
		// The message is built apart: its name pointers count from its start.
		msg, delay, err := s.zone.Reply(out[:0], q, true)
		if err != nil || delay > 0 && !s.sleepOrClosed(delay) {
			return
		}
		frame := binary.BigEndian.AppendUint16(nil, uint16(len(msg)))
		if _, err := conn.Write(append(frame, msg...)); err != nil {
			return
		}
	}
}
