package share_test

import (
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/internal/shareservers"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/source"
)

// relay forwards connections to a server that can be exchanged for another one.
func relay(t *testing.T, target *atomic.Pointer[string]) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", *target.Load())
			if err != nil {
				in.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					in.Close()
					out.Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}

// The key of a host's first connection is kept in the store. Another key is a clear
// error of that host, which loses no file; a key of the configuration goes before.
func TestHostKeyTrustedOnFirstUse(t *testing.T) {
	t.Parallel()
	root := shareservers.Reachable(t)
	shareservers.Write(t, filepath.Join(root, "a.txt"), "x")
	first, second := shareservers.SSHD(t, root), shareservers.SSHD(t, root)
	at := func(s shareservers.Server) *string {
		u, err := url.Parse(s.URL)
		must(t, err)
		return &u.Host
	}
	var target atomic.Pointer[string]
	target.Store(at(first))
	u, err := url.Parse(first.URL)
	must(t, err)
	u.Host = relay(t, &target)
	store, sink := open(t), newHeard()
	scan := func(o source.Options) share.HostStatus {
		r, err := share.New(t.Context(), store, sink, share.Config{Source: o, RetryMin: time.Nanosecond, RetryMax: time.Nanosecond})
		must(t, err)
		names, err := r.AddSource(t.Context(), u.String())
		must(t, err)
		sweep(t, r, names)
		return r.Status().Hosts[0]
	}
	key := func() string {
		hosts, err := store.Hosts(t.Context())
		must(t, err)
		return hosts[0].HostKey
	}
	if h := scan(source.Options{Key: first.Options.Key}); !h.Online || len(sink.paths()) != 1 {
		t.Fatalf("first use: %+v, %q", h, sink.paths())
	}
	trusted := key()
	if !strings.HasPrefix(trusted, "ssh-ed25519 ") {
		t.Errorf("stored key %q, want the host's", trusted)
	}
	target.Store(at(second))
	h := scan(source.Options{Key: second.Options.Key})
	if h.Online || h.Error != "denied" || !strings.Contains(h.Reason, "host key") || !strings.Contains(h.Reason, "host_keys") || len(sink.paths()) != 1 || key() != trusted {
		t.Errorf("another key: %+v, %q, stored %q, want a denied host that says why", h, sink.paths(), key())
	}
	if h := scan(source.Options{Key: second.Options.Key, HostKeys: second.Options.HostKeys}); !h.Online || key() == trusted {
		t.Errorf("a configured key: %+v, stored %q", h, key())
	}
	if h := scan(source.Options{Key: second.Options.Key}); !h.Online {
		t.Errorf("the key that was configured before: %+v", h)
	}
	file := filepath.Join(t.TempDir(), "known_hosts")
	for _, tt := range []struct {
		name, line, reason string // "" is a host that is read
	}{
		{"in the file", "[127.0.0.1]:" + u.Port() + " " + key(), ""},
		{"another key", "[127.0.0.1]:" + u.Port() + " " + trusted, "somebody may stand between"},
		{"another host", "other.example " + key(), "is not in " + file},
		{"nonsense", "nonsense", "known_hosts"},
	} {
		must(t, os.WriteFile(file, []byte(tt.line+"\n"), 0o600))
		h := scan(source.Options{Key: second.Options.Key, KnownHosts: file})
		if h.Online != (tt.reason == "") || !strings.Contains(h.Reason, tt.reason) {
			t.Errorf("known_hosts, %s: %+v, want reason %q", tt.name, h, tt.reason)
		}
	}
	if h := scan(source.Options{Key: second.Options.Key, HostKeys: []byte("nonsense")}); h.Online || !strings.Contains(h.Reason, "ssh-keyscan") {
		t.Errorf("a key that is none: %+v", h)
	}
}
