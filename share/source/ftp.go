package source

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jlaffaye/ftp"
)

// overFTP reads an FTP server over one control connection, one command at a time.
//
// LIST lies: some servers answer a missing folder with an empty list, a denied one
// with itself as its only child, and one that may be entered but not read with an
// empty list and a remark. So a folder is entered first, and an empty list is
// believed only if the server's last words are no excuse.
//
// Over TLS both the control connection and those of the data are encrypted, the
// latter by the session of the former, as servers demand that would know that both
// come from the same client (RFC 4217, section 10.2).
type overFTP struct {
	base    string
	conn    *ftp.ServerConn
	timeout time.Duration
	words   *lastWords
	conns   *openConns
	ctx     context.Context // of the command under way
	answer  atomic.Int64    // bytes that may still come for it
}

// openConns are the connections of a session, control and data: closing them is what
// ends a command that the server does not answer.
type openConns struct {
	mu   sync.Mutex
	open []net.Conn
	shut bool
}

func (o *openConns) addConn(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut {
		c.Close()
	}
	if len(o.open) < 2 {
		o.open = append(o.open, c)
	} else {
		o.open[1] = c // the data connection before is done with
	}
}

func (o *openConns) closeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shut = true
	for _, c := range o.open {
		c.Close()
	}
}

// runFTP runs f and closes the session's connections when ctx ends.
func (s *overFTP) runFTP(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.ctx = ctx
	s.answer.Store(maxAnswer)
	defer context.AfterFunc(ctx, s.conns.closeAll)()
	err := f()
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func dialFTP(ctx context.Context, u *url.URL, o Options) (Source, error) {
	user, password := o.userCredentials(u)
	if user == "" {
		user, password = "anonymous", "freshet@localhost"
	}
	s := &overFTP{base: "/" + basePath(u), timeout: o.timeoutOrDefault(), words: &lastWords{}, conns: &openConns{}, ctx: ctx}
	s.answer.Store(maxAnswer)
	defer context.AfterFunc(ctx, s.conns.closeAll)()
	var err error
	options, secure := []ftp.DialOption{ftp.DialWithShutTimeout(s.timeout), ftp.DialWithDebugOutput(s.words), ftp.DialWithLocation(time.UTC)}, (*tls.Config)(nil)
	if u.Scheme != "ftp" {
		secure = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname(), RootCAs: o.Roots, ClientSessionCache: tls.NewLRUClientSessionCache(2)}
	}
	switch u.Scheme {
	case "ftpes":
		options = append(options, ftp.DialWithExplicitTLS(secure))
	case "ftps":
		options = append(options, ftp.DialWithTLS(secure))
	}
	dialer, first := net.Dialer{Timeout: s.timeout}, true
	s.conn, err = ftp.Dial(Address(u), append(options, ftp.DialWithDialFunc(func(network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(s.ctx, network, address)
		if err != nil {
			return nil, err
		}
		s.conns.addConn(c)
		var conn net.Conn = boundedConn{impatient{c, s.timeout}, &s.answer}
		if secure != nil && (!first || u.Scheme == "ftps") { // the library makes a secure control connection of an open one
			conn = tls.Client(conn, secure)
		}
		first = false
		return conn, nil
	}))...)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var t *textproto.Error
		if errors.As(err, &t) && u.Scheme == "ftpes" && t.Code/100 == 5 {
			return nil, fmt.Errorf("%w: the server offers no TLS (ftp:// is without): %w", errProtocol, err)
		}
		return nil, ftpError(err)
	}
	if err := s.conn.Login(user, password); err != nil {
		_ = s.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err = ftpError(err); classifyError(err) == Protocol {
			err = fmt.Errorf("%w: %w", errDenied, err) // the library gives words without a code
		}
		return nil, err
	}
	return s, nil
}

// maxAnswer bounds what an FTP or SFTP server sends to one request: the listing of a
// million files fits.
const maxAnswer = 128 << 20

// boundedConn is a connection that fails when more came than is left.
type boundedConn struct {
	net.Conn
	left *atomic.Int64
}

func (c boundedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.left.Add(-int64(n)) < 0 && err == nil {
		err = fmt.Errorf("%w: an answer of more than %d bytes", errProtocol, maxAnswer)
	}
	return n, err
}

// impatient is a connection on which every read and write has a time limit.
type impatient struct {
	net.Conn
	limit time.Duration
}

func (c impatient) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(c.limit))
	return c.Conn.Read(p)
}

func (c impatient) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.limit))
	return c.Conn.Write(p)
}

// lastWords keeps the end of the conversation on the control connection.
type lastWords struct {
	mu  sync.Mutex
	end []byte
}

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = append(w.end, p...)
	if n := len(w.end) - 1024; n > 0 {
		w.end = append(w.end[:0], w.end[n:]...)
	}
	return len(p), nil
}

// excusesFolder reports whether the last answer says that the folder was not read.
func (w *lastWords) excusesFolder() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := bytes.TrimRight(w.end, "\r\n")
	last := bytes.ToLower(text[bytes.LastIndexByte(text, '\n')+1:])
	return bytes.Contains(last, []byte("fail")) || bytes.Contains(last, []byte("denied")) || bytes.Contains(last, []byte("not permitted"))
}

func (s *overFTP) List(ctx context.Context, path string) ([]Entry, error) {
	var out []Entry
	err := s.runFTP(ctx, func() (err error) {
		out, err = s.listFTP(path)
		return err
	})
	return out, wrapSourceError("list", path, ftpError(err))
}

func (s *overFTP) listFTP(path string) ([]Entry, error) {
	if err := s.conn.ChangeDir(joinBase(s.base, path)); err != nil {
		if isRefused550(err) && path != "" {
			return nil, s.denialOrAbsence(path, err, true)
		}
		return nil, err
	}
	return s.listCurrent()
}

// listCurrent lists the folder that was entered.
func (s *overFTP) listCurrent() ([]Entry, error) {
	list, err := s.conn.List("")
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(list))
	for _, e := range list {
		if e.Name == "." || e.Name == ".." {
			continue
		}
		n := Entry{Name: e.Name, Dir: e.Type == ftp.EntryTypeFolder, Link: e.Type == ftp.EntryTypeLink, Size: int64(e.Size), Modified: e.Time.Unix()}
		if n.Dir {
			n.Size = 0
		}
		out = append(out, n)
	}
	if len(out) == 0 && s.words.excusesFolder() {
		return nil, fmt.Errorf("%w: the server lists nothing and says that it could not read the folder", errDenied)
	}
	return out, nil
}

// isRefused550 reports whether the server will not do what was asked (550).
func isRefused550(err error) bool {
	var t *textproto.Error
	return errors.As(err, &t) && (t.Code == 550 || t.Code == 553 || t.Code == 450)
}

// denialOrAbsence reports whether a folder that cannot be entered is denied or gone; the answer
// is 550 for both. What its parent lists is there, and so denied; where a file
// took the folder's place, or the reverse, it is gone.
func (s *overFTP) denialOrAbsence(path string, err error, dir bool) error {
	parent, name := "", path
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			parent, name = path[:i], path[i+1:]
			break
		}
	}
	if s.conn.ChangeDir(joinBase(s.base, parent)) != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	entries, lerr := s.listCurrent()
	if lerr != nil {
		return lerr
	}
	for _, e := range entries {
		if e.Name == name && e.Dir == dir {
			return fmt.Errorf("%w: %w", errDenied, err)
		}
	}
	return fmt.Errorf("%w: %w", errGone, err)
}

func (s *overFTP) Open(ctx context.Context, path string) (File, error) {
	var size int64
	err := s.runFTP(ctx, func() (err error) {
		if size, err = s.conn.FileSize(joinBase(s.base, path)); isRefused550(err) {
			err = s.denialOrAbsence(path, err, false)
		}
		return err
	})
	if err != nil {
		return nil, wrapSourceError("open", path, ftpError(err))
	}
	return &ftpFile{s: s, ctx: ctx, path: path, size: size}, nil
}

func (s *overFTP) Close() error {
	defer s.conns.closeAll()
	defer time.AfterFunc(time.Second, s.conns.closeAll).Stop()
	return s.conn.Quit() // a courtesy
}

// ftpFile reads from an offset on; reads one after the other go on in the same
// transfer.
type ftpFile struct {
	s    *overFTP
	ctx  context.Context
	path string
	size int64
	pos  int64
	body *ftp.Response
}

func (f *ftpFile) Size() int64 { return f.size }

func (f *ftpFile) ReadAt(p []byte, off int64) (int, error) {
	if off >= f.size {
		return 0, io.EOF
	}
	n := 0
	err := f.s.runFTP(f.ctx, func() (err error) {
		n, err = f.readAt(p[:min(int64(len(p)), f.size-off)], off)
		return err
	})
	if err != nil {
		return n, wrapSourceError("read", f.path, ftpError(err))
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readAt fills p, which lies within the file.
func (f *ftpFile) readAt(p []byte, off int64) (int, error) {
	if f.body == nil || f.pos != off {
		f.Close()
		body, err := f.s.conn.RetrFrom(joinBase(f.s.base, f.path), uint64(off))
		if err != nil {
			if isRefused550(err) {
				err = fmt.Errorf("%w: %w", errDenied, err)
			}
			return 0, err
		}
		f.body, f.pos = body, off
	}
	n, err := io.ReadFull(f.body, p)
	f.pos += int64(n)
	return n, err
}

// Close ends a transfer. The server's complaint that it was not read to its end
// is no error.
func (f *ftpFile) Close() error {
	if f.body != nil {
		_ = f.body.Close()
		f.body = nil
	}
	return nil
}

func ftpError(err error) error {
	var t *textproto.Error
	if !errors.As(err, &t) {
		return err
	}
	switch t.Code {
	case 530, 532:
		return fmt.Errorf("%w: %w", errDenied, err)
	case 421, 425, 426, 10060, 10061:
		return fmt.Errorf("%w: %w", errLost, err)
	case 550:
		if !errors.Is(err, errDenied) && !errors.Is(err, errGone) {
			return fmt.Errorf("%w: %w", errGone, err)
		}
	}
	return err
}
