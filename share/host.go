package share

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/freshet/freshet/share/part"
	"github.com/freshet/freshet/share/source"
)

// host is a Host at work. Its fields are guarded by the robot's lock, but for
// what only the worker that holds the host's machine touches (table, denied,
// session).
type host struct {
	name    string
	url     *url.URL // with credentials
	options source.Options
	hostKey string // of SSH, trusted at the first connection
	machine string // hosts on one machine are never read at once

	table  part.Table
	parts  map[part.Part]*partInfo
	denied map[string]int64
	// root is what a local root was known by when it was last scanned; doubt is
	// since when the root seems to be another (confirmRoot); 0 not.
	root    string
	doubt   int64
	suspect string // the file whose tags lost the last connection

	added      bool             // named by a source of this process, by itself or in a range
	configured bool             // a source names it: it is asked for however long it is off
	errors     map[string]int64 // by reason, since the start

	offline int64
	next    int64
	fails   int
	seen    int64
	err     source.Class
	reason  string // the error of err, since the start
	dirty   bool   // visits or state not stored yet
	session source.Source
	used    time.Time // session was used last
	saved   time.Time
}

// partInfo is a part with its visits.
type partInfo struct {
	sum  part.Sum
	item *item
	gone map[string]bool // folders that were gone in the last scan although they were listed
}

// HostName returns the identity of a host: its URL without credentials and with
// a normal form of the rest.
func HostName(u *url.URL) string {
	c := *u
	c.User, c.RawQuery, c.Fragment = nil, "", ""
	c.Host = strings.ToLower(c.Host)
	c.Path = strings.TrimRight(c.Path, "/")
	c.RawPath = ""
	if c.Scheme == "file" {
		return "file://" + escapePath(c.Path)
	}
	return strings.TrimPrefix(c.Scheme, "index+") + "://" + c.Host + escapePath(c.Path)
}

// machineOf returns what is read by one robot at once: the network host whatever
// the protocol, a local folder by itself.
func machineOf(u *url.URL) string {
	if u.Scheme == "file" {
		return HostName(u)
	}
	return strings.ToLower(u.Hostname())
}

func newHost(u *url.URL) *host {
	return &host{name: HostName(u), url: u, machine: machineOf(u), parts: map[part.Part]*partInfo{}, denied: map[string]int64{}, errors: map[string]int64{}}
}

// loadHost fills the host with what is stored of it.
func (h *host) loadHost(ctx context.Context, store Store, known Host) error {
	h.offline, h.next, h.fails, h.seen, h.err = known.Offline, known.Next, known.Fails, known.Seen, source.Class(known.Error)
	h.root, h.doubt, h.hostKey = known.Root, known.Doubt, known.HostKey
	for k, v := range known.Denied {
		h.denied[k] = v
	}
	parts, err := store.Parts(ctx, h.name)
	if err != nil {
		return err
	}
	visits := map[uint64]Visit{}
	for _, v := range known.Visits {
		visits[v.Part] = v
	}
	for _, s := range parts {
		h.table.Add(s.Part)
		it := new(item)
		if v, ok := visits[s.Part.ID()]; ok {
			if err := it.restoreVisit(v); err != nil {
				return fmt.Errorf("history of %s of %s: %w", s.Part, h.name, err)
			}
		}
		h.parts[s.Part] = &partInfo{sum: s.Sum, item: it}
	}
	return nil
}

// hostRecord returns what is stored of the host.
func (h *host) hostRecord() Host {
	out := Host{
		Name: h.name, Offline: h.offline, Next: h.next, Fails: h.fails, Seen: h.seen, Error: string(h.err), Root: h.root, Doubt: h.doubt, HostKey: h.hostKey,
		Denied: make(map[string]int64, len(h.denied)), Visits: make([]Visit, 0, len(h.parts)),
	}
	for k, v := range h.denied {
		out.Denied[k] = v
	}
	for p, i := range h.parts {
		if v, ok := i.item.storedVisit(p); ok {
			out.Visits = append(out.Visits, v)
		}
	}
	return out
}

// partTotals adds up the parts.
func (h *host) partTotals() part.Sum {
	var s part.Sum
	for _, i := range h.parts {
		s = s.Plus(i.sum)
	}
	return s
}
