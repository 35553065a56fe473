package source

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// web is what WebDAV and HTTP directory indexes have in common: requests below
// a URL, ranged reads.
type web struct {
	root     *url.URL // ends in a slash
	client   *http.Client
	user     string
	password string
	timeout  time.Duration
}

// maxListing bounds the bytes of one listing over HTTP.
const maxListing = 512 << 20

func newWeb(ctx context.Context, u *url.URL, o Options) (*web, error) {
	root := *u
	root.User, root.RawQuery, root.Fragment, root.RawPath = nil, "", "", ""
	root.Scheme = map[string]string{"webdav": "http", "webdavs": "https", "index+http": "http", "index+https": "https"}[u.Scheme]
	if root.Scheme == "" {
		root.Scheme = u.Scheme
	}
	root.Path = "/" + basePath(u)
	if root.Path != "/" {
		root.Path += "/"
	}
	w := &web{root: &root, timeout: o.timeoutOrDefault()}
	w.user, w.password = o.userCredentials(u)
	w.client = &http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: o.timeoutOrDefault()}).DialContext, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots}, ResponseHeaderTimeout: o.timeoutOrDefault(),
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 5 || r.URL.Host != root.Host {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	resp, err := w.doRequest(ctx, http.MethodOptions, "", nil, nil)
	if err != nil && ClassOf(err) != Protocol && ClassOf(err) != Denied && ClassOf(err) != Gone {
		return nil, err
	}
	if resp != nil {
		resp.Body.Close()
	}
	return w, nil
}

// urlOf returns the URL of a path below the root; folders end in a slash.
func (w *web) urlOf(path string) string {
	u := *w.root
	u.Path += path
	return u.String()
}

// doRequest sends a request and returns an answer of class 2xx.
func (w *web) doRequest(ctx context.Context, method, path string, body io.Reader, header map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.urlOf(path), body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errProtocol, err)
	}
	req.Header.Set("User-Agent", "Freshet")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	if w.user != "" {
		req.SetBasicAuth(w.user, w.password)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	if err := statusError(resp.StatusCode); err != nil {
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

func statusError(code int) error {
	switch {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusProxyAuthRequired:
		return fmt.Errorf("%w: HTTP status %d", errDenied, code)
	case code == http.StatusNotFound, code == http.StatusGone:
		return fmt.Errorf("%w: HTTP status %d", errGone, code)
	case code == http.StatusRequestTimeout, code == http.StatusGatewayTimeout:
		return fmt.Errorf("%w: HTTP status %d", context.DeadlineExceeded, code)
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable, code == http.StatusBadGateway:
		return fmt.Errorf("%w: HTTP status %d", errLost, code)
	}
	return fmt.Errorf("%w: HTTP status %d", errProtocol, code)
}

// folderPath returns the path of a folder with the slash that servers want.
func folderPath(path string) string {
	if path == "" {
		return ""
	}
	return path + "/"
}

// blameForLoss reports whether a lost connection is the host's fault or the request's: some
// servers hang up on a folder that they cannot read. A host that answers another
// request is not offline.
func (w *web) blameForLoss(ctx context.Context, err error) error {
	if classifyError(err) != Offline {
		return err
	}
	resp, again := w.doRequest(ctx, http.MethodOptions, "", nil, nil)
	if again != nil && classifyError(again).Lost() {
		return err
	}
	if resp != nil {
		resp.Body.Close()
	}
	// Not wrapped: its class would be the lost connection's.
	return fmt.Errorf("%w: the server hangs up: %v", errProtocol, err) //nolint:errorlint // see above
}

func (w *web) Close() error {
	w.client.CloseIdleConnections()
	return nil
}

func (w *web) Open(ctx context.Context, path string) (File, error) {
	f := &webFile{w: w, ctx: ctx, path: path}
	open, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	resp, err := w.doRequest(open, http.MethodHead, path, nil, nil)
	if err != nil {
		return nil, wrapSourceError("open", path, err)
	}
	resp.Body.Close()
	if f.size = resp.ContentLength; f.size < 0 {
		return nil, wrapSourceError("open", path, fmt.Errorf("%w: the server does not tell the file's size", errProtocol))
	}
	return f, nil
}

type webFile struct {
	w    *web
	ctx  context.Context
	path string
	size int64
}

func (f *webFile) Size() int64  { return f.size }
func (f *webFile) Close() error { return nil }

func (f *webFile) ReadAt(p []byte, off int64) (int, error) {
	if off >= f.size {
		return 0, io.EOF
	}
	want := min(int64(len(p)), f.size-off)
	ctx, cancel := context.WithTimeout(f.ctx, f.w.timeout)
	defer cancel()
	resp, err := f.w.doRequest(ctx, http.MethodGet, f.path, nil, map[string]string{"Range": "bytes=" + strconv.FormatInt(off, 10) + "-" + strconv.FormatInt(off+want-1, 10)})
	if err != nil {
		return 0, wrapSourceError("read", f.path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusPartialContent || !strings.HasPrefix(resp.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(off, 10)+"-") {
		if resp.StatusCode != http.StatusOK || off != 0 {
			return 0, wrapSourceError("read", f.path, fmt.Errorf("%w: the server gives no ranges", errProtocol))
		}
	}
	n, err := io.ReadFull(resp.Body, p[:want])
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return n, wrapSourceError("read", f.path, fmt.Errorf("%w: %d of %d bytes came", errLost, n, want))
	case err != nil:
		return n, wrapSourceError("read", f.path, err)
	case n < len(p):
		return n, io.EOF
	}
	return n, nil
}
