package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/cloudsoda/go-smb2"
)

// smb reads a Windows or Samba server over SMB 2 and 3. Without a share in its
// URL the root is a folder of all shares but the hidden ones (their names end
// in $).
type smb struct {
	base    string // share, or share/folder, or ""
	session *smb2.Session
	conn    net.Conn
	shares  map[string]*smb2.Share
	timeout time.Duration
}

// credits lets one session ask for listings of 8 MB while others are under way.
const credits = 8192

func dialSMB(ctx context.Context, u *url.URL, o Options) (Source, error) {
	user, password := o.userCredentials(u)
	domain := o.Domain
	if d, name, ok := strings.Cut(user, ";"); ok {
		domain, user = d, name
	}
	if user == "" {
		user = "Guest"
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", Address(u))
	if err != nil {
		return nil, err
	}
	dialer := smb2.Dialer{MaxCreditBalance: credits, Initiator: &smb2.NTLMInitiator{User: user, Password: password, Domain: domain}}
	session, err := dialer.DialConn(ctx, conn, Address(u))
	if err != nil {
		conn.Close()
		return nil, smbError(err)
	}
	return &smb{base: basePath(u), session: session, conn: conn, shares: map[string]*smb2.Share{}, timeout: o.timeoutOrDefault()}, nil
}

func (s *smb) List(ctx context.Context, path string) ([]Entry, error) {
	var out []Entry
	err := s.ListEach(ctx, path, func(entries []Entry) error {
		out = append(out, entries...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ListEach implements Streamer. The time limit is for each piece.
func (s *smb) ListEach(ctx context.Context, path string, f func([]Entry) error) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := time.AfterFunc(s.timeout, cancel)
	defer limit.Stop()
	fault := func(err error) error {
		if inner.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: no answer in %v", context.DeadlineExceeded, s.timeout)
		}
		return wrapSourceError("list", path, smbError(err))
	}
	at := joinBase(s.base, path)
	if at == "" {
		entries, err := s.shareFolders(inner)
		if err != nil {
			return fault(err)
		}
		return f(entries)
	}
	share, rest, err := s.mountedShare(inner, at)
	if err != nil {
		return fault(err)
	}
	d, err := share.WithContext(inner).Open(rest)
	if err != nil {
		return fault(err)
	}
	defer d.Close()
	if st, err := d.Stat(); err == nil && !st.IsDir() {
		return wrapSourceError("list", path, fmt.Errorf("%w: a file took the folder's place", errGone))
	}
	for {
		infos, err := d.Readdir(listingPiece)
		if err == io.EOF || err == nil && len(infos) == 0 {
			return nil
		}
		if err != nil {
			return fault(err)
		}
		limit.Stop()
		if err := f(smbEntries(infos)); err != nil {
			return err
		}
		limit.Reset(s.timeout)
	}
}

// shareFolders returns the shares of the server but the hidden ones, as folders.
func (s *smb) shareFolders(ctx context.Context) ([]Entry, error) {
	names, err := s.session.WithContext(ctx).ListSharenames()
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, n := range names {
		if !strings.HasSuffix(n, "$") {
			out = append(out, Entry{Name: n, Dir: true})
		}
	}
	return out, nil
}

func smbEntries(infos []os.FileInfo) []Entry {
	out := make([]Entry, 0, len(infos))
	for _, fi := range infos {
		e := Entry{Name: fi.Name(), Dir: fi.IsDir(), Size: fi.Size(), Modified: fi.ModTime().Unix()}
		if st, ok := fi.Sys().(*smb2.FileStat); ok && st.FileAttributes&reparsePoint != 0 || fi.Mode()&os.ModeSymlink != 0 {
			e.Link = true
		}
		if e.Dir {
			e.Size = 0
		}
		out = append(out, e)
	}
	return out
}

const reparsePoint = 0x400 // FILE_ATTRIBUTE_REPARSE_POINT: link or junction

// mountedShare returns the mounted share of a path and the path inside it.
func (s *smb) mountedShare(ctx context.Context, path string) (*smb2.Share, string, error) {
	name, rest, _ := strings.Cut(path, "/")
	if sh, ok := s.shares[name]; ok {
		return sh, rest, nil
	}
	sh, err := s.session.WithContext(ctx).Mount(name)
	if err != nil {
		return nil, "", err
	}
	s.shares[name] = sh
	return sh, rest, nil
}

func (s *smb) Open(ctx context.Context, path string) (File, error) {
	opening, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	share, rest, err := s.mountedShare(opening, joinBase(s.base, path))
	if err != nil {
		return nil, wrapSourceError("open", path, smbError(err))
	}
	f, err := share.WithContext(ctx).Open(rest)
	if err != nil {
		return nil, wrapSourceError("open", path, smbError(err))
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, wrapSourceError("open", path, smbError(err))
	}
	return smbFile{f, st.Size(), path}, nil
}

func (s *smb) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.session.WithContext(ctx).Logoff() // a courtesy; the connection ends anyway
	return s.conn.Close()
}

type smbFile struct {
	*smb2.File
	size int64
	path string
}

func (f smbFile) Size() int64 { return f.size }

func (f smbFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if err != nil && n < len(p) && off+int64(n) < f.size {
		return n, wrapSourceError("read", f.path, smbError(err))
	}
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// smbError marks errors of the protocol with what they mean.
func smbError(err error) error {
	var response *smb2.ResponseError
	var transport *smb2.TransportError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &transport):
		return fmt.Errorf("%w: %w", errLost, err)
	case errors.As(err, &response):
		switch response.Code {
		case 0xC000006D, 0xC000006E, 0xC0000072, 0xC0000022, 0xC0000064, 0xC000006A, 0xC0000071, 0xC0000193, 0xC0000234, 0xC0000061: // logon and access
			return fmt.Errorf("%w: %w", errDenied, err)
		case 0xC00000CC, 0xC0000034, 0xC000003A, 0xC000000F, 0xC0000039, 0xC0000056, 0xC0000103: // no such name, pending deletion, no directory any more
			return fmt.Errorf("%w: %w", errGone, err)
		case 0xC0000203, 0xC00000C9, 0xC000020C, 0xC000035C, 0xC00000C4: // session, share or connection ended
			return fmt.Errorf("%w: %w", errLost, err)
		}
	}
	return err
}
