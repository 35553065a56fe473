package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// overSFTP reads the file subsystem of an SSH server.
type overSFTP struct {
	base    string
	conn    net.Conn
	ssh     *ssh.Client
	client  *sftp.Client
	timeout time.Duration
}

func dialSFTP(ctx context.Context, u *url.URL, o Options) (_ Source, err error) {
	user, password := o.credentials(u)
	if user == "" {
		user = "anonymous"
	}
	auth := []ssh.AuthMethod{ssh.Password(password)}
	if len(o.Key) > 0 {
		signer, err := ssh.ParsePrivateKey(o.Key)
		if err != nil {
			return nil, fmt.Errorf("private key: %w", err)
		}
		auth = append([]ssh.AuthMethod{ssh.PublicKeys(signer)}, auth...)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", Address(u))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer func() {
		if err != nil {
			conn.Close()
			if ctx.Err() != nil {
				err = ctx.Err()
			}
		}
	}()
	c, chans, reqs, err := ssh.NewClientConn(conn, Address(u), &ssh.ClientConfig{User: user, Auth: auth, HostKeyCallback: o.hostKey(), Timeout: o.timeout()})
	if err != nil {
		if strings.Contains(err.Error(), "unable to authenticate") {
			err = fmt.Errorf("%w: %w", errDenied, err)
		}
		return nil, err
	}
	client := ssh.NewClient(c, chans, reqs)
	s, err := sftp.NewClient(client)
	if err != nil {
		return nil, err
	}
	return &overSFTP{base: "/" + base(u), conn: conn, ssh: client, client: s, timeout: o.timeout()}, nil
}

// hostKey accepts the keys in o, or any if there are none.
func (o Options) hostKey() ssh.HostKeyCallback {
	if len(o.HostKeys) == 0 {
		return ssh.InsecureIgnoreHostKey() //nolint:gosec // documented: shares of a local network have no known keys
	}
	return func(_ string, _ net.Addr, key ssh.PublicKey) error {
		for line := range bytes.Lines(o.HostKeys) {
			if k, _, _, _, err := ssh.ParseAuthorizedKey(line); err == nil && bytes.Equal(k.Marshal(), key.Marshal()) {
				return nil
			}
		}
		return fmt.Errorf("%w: the host's key %s is not among the accepted ones", errDenied, ssh.FingerprintSHA256(key))
	}
}

// do runs f and closes the connection when f takes longer than the timeout or
// ctx ends: nothing else stops a read of a silent host.
func (s *overSFTP) do(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	defer stop()
	err := f()
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, sftp.ErrSSHFxConnectionLost) {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

func (s *overSFTP) List(ctx context.Context, path string) ([]Entry, error) {
	var infos []os.FileInfo
	err := s.do(ctx, func() (err error) {
		infos, err = s.client.ReadDir(below(s.base, path))
		return err
	})
	if err != nil {
		return nil, fail("list", path, err)
	}
	out := make([]Entry, 0, len(infos))
	for _, fi := range infos {
		e := Entry{Name: fi.Name(), Modified: fi.ModTime().Unix()}
		switch mode := fi.Mode(); {
		case mode.IsDir():
			e.Dir = true
		case mode&os.ModeSymlink != 0:
			e.Link = true
		case mode.IsRegular():
			e.Size = fi.Size()
		default:
			continue
		}
		out = append(out, e)
	}
	return out, nil
}

func (s *overSFTP) Open(ctx context.Context, path string) (File, error) {
	var f *sftp.File
	var st os.FileInfo
	err := s.do(ctx, func() (err error) {
		if f, err = s.client.Open(below(s.base, path)); err == nil {
			st, err = f.Stat()
		}
		return err
	})
	if err != nil {
		return nil, fail("open", path, err)
	}
	return &sftpFile{f, s, ctx, st.Size(), path}, nil
}

func (s *overSFTP) Close() error {
	s.conn.Close() // first: the clients wait for answers of a silent host
	s.client.Close()
	return s.ssh.Close()
}

type sftpFile struct {
	f    *sftp.File
	s    *overSFTP
	ctx  context.Context
	size int64
	path string
}

func (f *sftpFile) Size() int64  { return f.size }
func (f *sftpFile) Close() error { return f.f.Close() }

func (f *sftpFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.s.do(f.ctx, func() (err error) {
		n, err = f.f.ReadAt(p, off)
		return err
	})
	if err != nil && n < len(p) && off+int64(n) < f.size {
		return n, fail("read", f.path, err)
	}
	return n, err
}
