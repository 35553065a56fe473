package app

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
)

// What others on the machine could read or change is the owner's alone: the
// folder, the token, and with the token the robot. A folder with wider rights is
// narrowed.
func TestDataDirectoryIsPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ownerFile), []byte("left by a crash"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask
		t.Fatal(err)
	}
	_, address := start(t, config.Default(), dir)
	mode := func(path string) fs.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if got := mode(dir); got != 0o700 {
		t.Errorf("data directory %o, want 700", got)
	}
	for _, name := range []string{ownerFile, addressFile} {
		if got := mode(filepath.Join(dir, name)); got != 0o600 {
			t.Errorf("%s: %o, want 600", name, got)
		}
	}
	token, err := OwnerToken(dir)
	if err != nil || len(token) != 64 {
		t.Fatalf("token %q, %v", token, err)
	}
	for _, tt := range []struct {
		token string
		code  int
	}{{"", 401}, {"left by a crash", 401}, {token[:63], 401}, {token, 200}} {
		req, err := http.NewRequest(http.MethodPost, address+"/api/pause", nil)
		if err != nil {
			t.Fatal(err)
		}
		if tt.token != "" {
			req.Header.Set("Authorization", "Bearer "+tt.token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != tt.code {
			t.Errorf("pause with token %q: %d, want %d", tt.token, res.StatusCode, tt.code)
		}
	}
}

// An operator cannot make the server read its own files, or crawl in nobody's name.
func TestSourcesThatOperatorsMayNotAdd(t *testing.T) {
	t.Parallel()
	n, _ := start(t, config.Default(), t.TempDir())
	for _, tt := range []struct{ url, want string }{
		{"file:///etc", "configuration file"},
		{"FILE:///etc", "configuration file"},
		{"file:etc", "configuration file"},
		{"https://www.example.org/", "agent.contact"},
		{"smb://carol:s3cret@nas/films", "a share with a login"},
		{"smb://nas/films", "no share is configured"},
	} {
		err := n.AddSource(context.Background(), console.Source{URL: tt.url})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want an error with %q", tt.url, err, tt.want)
		}
	}
}

// certificate writes a certificate for localhost and its key.
func certificate(t *testing.T, dir string, serial int64) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// The console speaks TLS by its own certificate, sets cookies for TLS alone, and
// the commands of the owner find it.
func TestConsoleByTLS(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Console.TLSCert, c.Console.TLSKey = certificate(t, t.TempDir(), 1)
	dir := t.TempDir()
	n, _ := start(t, c, dir)
	at, err := Address(dir)
	if err != nil || !strings.HasPrefix(at, "https://127.0.0.1:") || at != n.URL() {
		t.Fatalf("address %q, %v; URL %q", at, err, n.URL())
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Get(n.LoginLink())
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if cookies := res.Cookies(); res.ProtoMajor != 2 || len(cookies) != 1 || !cookies[0].Secure || cookies[0].Name != "__Host-freshet_session" {
		t.Errorf("%s, cookies %v", res.Proto, cookies)
	}
	res, err = http.Get("http" + strings.TrimPrefix(at, "https") + "/api/search?q=x")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP: %s %s, want 400", res.Status, b)
	}
}

// A new certificate is taken without a new start; a broken one leaves the old.
func TestCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := certificate(t, dir, 1)
	var log bytes.Buffer
	files, err := newCertFiles(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	serial := func() int64 {
		t.Helper()
		files.checked = time.Time{} // the time to look has come
		c, err := files.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.Int64()
	}
	touch := func(after time.Duration) {
		t.Helper()
		for _, p := range []string{cert, key} {
			if err := os.Chtimes(p, time.Time{}, time.Now().Add(after)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := serial(); got != 1 {
		t.Errorf("serial %d, want 1", got)
	}
	certificate(t, dir, 2)
	touch(time.Minute)
	if got := serial(); got != 2 {
		t.Errorf("after a new certificate: serial %d, want 2", got)
	}
	if err := os.WriteFile(cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	touch(2 * time.Minute)
	if got := serial(); got != 2 || !strings.Contains(log.String(), "stays the old one") {
		t.Errorf("after a broken certificate: serial %d, want 2; log %q", got, log.String())
	}
	if _, err := newCertFiles(cert, key, slog.Default()); err == nil || !strings.Contains(err.Error(), "console.tls_cert") {
		t.Errorf("a broken certificate at start: %v", err)
	}
}
