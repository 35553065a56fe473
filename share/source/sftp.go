package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// overSFTP reads the file subsystem of an SSH server.
type overSFTP struct {
	base    string
	conn    net.Conn
	ssh     *ssh.Client
	client  *sftp.Client
	timeout time.Duration
	answer  *atomic.Int64 // bytes that may still come for the request
}

func dialSFTP(ctx context.Context, u *url.URL, o Options) (_ Source, err error) {
	user, password := o.userCredentials(u)
	if user == "" {
		user = "anonymous"
	}
	var auth []ssh.AuthMethod
	if len(o.Key) > 0 {
		signer, err := ssh.ParsePrivateKey(o.Key)
		if err != nil {
			return nil, fmt.Errorf("private key: %w", err)
		}
		auth = append(auth, ssh.PublicKeys(signer))
	}
	if password != "" || len(o.Key) == 0 {
		auth = append(auth, ssh.Password(password))
	}
	callback, algorithms, err := o.hostKeyCallback(Address(u))
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", Address(u))
	if err != nil {
		return nil, err
	}
	var answer atomic.Int64
	answer.Store(maxAnswer)
	conn = boundedConn{conn, &answer}
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
	c, chans, reqs, err := ssh.NewClientConn(conn, Address(u), &ssh.ClientConfig{User: user, Auth: auth, HostKeyCallback: callback, HostKeyAlgorithms: algorithms, Timeout: o.timeoutOrDefault()})
	if err != nil {
		if text := err.Error(); strings.Contains(text, "unable to authenticate") {
			err = fmt.Errorf("%w: %w", errDenied, err)
		} else if len(algorithms) > 0 && strings.Contains(text, "no common algorithm for host key") {
			err = fmt.Errorf("%w: the host has no key of the accepted kind %s any more: if the server has a new key, write it as host_keys of the source: %w", errDenied, algorithms[0], err)
		}
		return nil, err
	}
	client := ssh.NewClient(c, chans, reqs)
	s, err := sftp.NewClient(client)
	if err != nil {
		return nil, err
	}
	return &overSFTP{base: "/" + basePath(u), conn: conn, ssh: client, client: s, timeout: o.timeoutOrDefault(), answer: &answer}, nil
}

// hostKeyCallback returns what checks a host's key, and the algorithms of the accepted ones:
// a host has several keys, and offers the one that we ask for. Without accepted keys
// the first one is, and the caller hears of it.
func (o Options) hostKeyCallback(address string) (ssh.HostKeyCallback, []string, error) {
	lines := o.HostKeys
	if len(bytes.TrimSpace(lines)) == 0 {
		if o.KnownHosts != "" {
			return o.knownHostsCallback(address)
		}
		lines = []byte(o.KnownHostKey)
	}
	var accepted []ssh.PublicKey
	var algorithms []string
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: host key %q: %w: write it as \"ssh-ed25519 AAAA...\", as ssh-keyscan prints it behind the host", errDenied, line, err)
		}
		accepted = append(accepted, key)
		algorithms = append(algorithms, algorithmsOf(key)...)
	}
	check := func(_ string, _ net.Addr, key ssh.PublicKey) error {
		known := slices.ContainsFunc(accepted, func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), key.Marshal()) })
		if len(accepted) > 0 && !known {
			return fmt.Errorf("%w: the host key is %s and not %s: somebody may stand between; if the server has a new key, write it as host_keys of the source",
				errDenied, ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(accepted[0]))
		}
		if o.NewHostKey != nil {
			o.NewHostKey(string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(key))))
		}
		return nil
	}
	return check, algorithms, nil
}

// algorithmsOf returns the names under which a host is asked for a key.
func algorithmsOf(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{key.Type()}
}

// knownHostsCallback is hostKeyCallback by the file KnownHosts.
func (o Options) knownHostsCallback(address string) (ssh.HostKeyCallback, []string, error) {
	known, err := knownhosts.New(o.KnownHosts)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: known_hosts: %w", errDenied, err)
	}
	var differs *knownhosts.KeyError
	if err := known(address, &net.TCPAddr{}, noKey{}); !errors.As(err, &differs) || len(differs.Want) == 0 {
		return nil, nil, fmt.Errorf("%w: %s is not in %s: check its key and add it (ssh-keyscan prints it)", errDenied, address, o.KnownHosts)
	}
	var algorithms []string
	for _, k := range differs.Want {
		algorithms = append(algorithms, algorithmsOf(k.Key)...)
	}
	check := func(_ string, remote net.Addr, key ssh.PublicKey) error {
		if err := known(address, remote, key); err != nil {
			return fmt.Errorf("%w: the host key is %s and not the one in %s: somebody may stand between: %w", errDenied, ssh.FingerprintSHA256(key), o.KnownHosts, err)
		}
		return nil
	}
	return check, algorithms, nil
}

// noKey is a key that no host has: the answer to it lists the keys of a host.
type noKey struct{ ssh.PublicKey }

func (noKey) Type() string    { return "none" }
func (noKey) Marshal() []byte { return nil }

// runSFTP runs f and closes the connection when f takes longer than the timeout or
// ctx ends: nothing else stops a read of a silent host.
func (s *overSFTP) runSFTP(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	defer stop()
	s.answer.Store(maxAnswer)
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
	err := s.runSFTP(ctx, func() (err error) {
		infos, err = s.client.ReadDir(joinBase(s.base, path))
		return err
	})
	if err != nil {
		return nil, wrapSourceError("list", path, err)
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
	err := s.runSFTP(ctx, func() (err error) {
		if f, err = s.client.Open(joinBase(s.base, path)); err == nil {
			st, err = f.Stat()
		}
		return err
	})
	if err != nil {
		return nil, wrapSourceError("open", path, err)
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
	err = f.s.runSFTP(f.ctx, func() (err error) {
		n, err = f.f.ReadAt(p, off)
		return err
	})
	if err != nil && n < len(p) && off+int64(n) < f.size {
		return n, wrapSourceError("read", f.path, err)
	}
	return n, err
}
