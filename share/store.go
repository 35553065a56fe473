package share

import (
	"context"
	"errors"
	"time"

	"github.com/freshet/freshet/share/part"
)

// Store keeps hosts, parts and files between runs. It is used by many
// goroutines; two of them never work on one host at once.
type Store interface {
	// Hosts returns every host.
	Hosts(ctx context.Context) ([]Host, error)
	// PutHost inserts or replaces one host, without its parts and files.
	PutHost(ctx context.Context, h Host) error
	// DropHost removes a host with its parts and files.
	DropHost(ctx context.Context, host string) error
	// Parts returns the parts of a host, in any order.
	Parts(ctx context.Context, host string) ([]PartState, error)
	// Part returns one part; ok is false where there is none.
	Part(ctx context.Context, host string, p part.Part) (s PartState, ok bool, err error)
	// Files calls f for the files of a host with low <= key < high ("": to the
	// end), in byte order of the keys. f must not call the store; its error ends the loop and
	// is returned.
	Files(ctx context.Context, host, low, high string, f func(key string, file *File) error) error
	// Commit applies a batch in one transaction: all of it or nothing, and
	// when it returns without error the batch survives a crash.
	Commit(ctx context.Context, b Batch) error
	Close() error
}

// Batch is what one scan of a part writes.
type Batch struct {
	Host   string
	Put    []File
	Delete []string // paths
	Parts  []PartState
	Gone   []part.Part
}

// Writes returns the number of rows that the batch writes.
func (b *Batch) Writes() int64 {
	return int64(len(b.Put) + len(b.Delete) + len(b.Parts) + len(b.Gone))
}

// PartState is what is known of a part between scans, but for its visits.
type PartState struct {
	Part    part.Part
	Sum     part.Sum
	Changed int64  // last scan that found a change, seconds since 1970 UTC; 0: never scanned to its end
	Refused uint32 // the fingerprint of the reader (see scan.reader) that met a document beyond its limits here; 0: none
}

// Host is one root that is read over one protocol.
type Host struct {
	Name    string // its URL without user and password, the host's identity
	Offline int64  // since when it does not answer, seconds since 1970 UTC; 0: online
	Next    int64  // not to be asked before
	Fails   int    // in a row
	Seen    int64  // last answer
	Error   string // why it is offline: the class
	Root    string `json:",omitempty"` // identity of a local root when it was last scanned
	Doubt   int64  `json:",omitempty"` // since when the root seems to be another; 0: it is the one
	HostKey string `json:",omitempty"` // SSH host key that was trusted at first, in authorized_keys form
	// Denied folders by path, with the time of the last refusal.
	Denied map[string]int64
	Visits []Visit
}

// Visit is the history of visits to a part. Visits are kept with their host,
// in one row, so that a scan without a change costs no row of its own.
type Visit struct {
	Part    uint64 // part.ID
	History []byte // change statistics in their stored form
	Last    int64  // last visit, seconds since 1970 UTC
}

// Sink hears of every change after it was committed, such as a search index.
// Calls for one host come in order, one after the other.
type Sink interface {
	Update(ctx context.Context, host string, put []File, removed []string) error
	// Online tells that a host answers or does not.
	Online(host string, online bool)
	// Drop tells that a host and all its files are forgotten.
	Drop(ctx context.Context, host string) error
}

// Journal keeps which files changed, until a follower such as a search index has made
// the changes durable itself. Changes of a host are numbered from 1 on.
type Journal interface {
	// ID identifies the store. A copy of a store in another place has the same.
	ID() string
	// ChangedHosts returns the hosts that ever had a change, forgotten hosts among them.
	ChangedHosts(ctx context.Context) ([]string, error)
	// LastChange returns the number of a host's last change, 0 for none.
	LastChange(ctx context.Context, host string) (uint64, error)
	// Changes calls f for the changes of a host behind a number, in order. It returns
	// ErrNoChanges before the first call if some of them were trimmed.
	Changes(ctx context.Context, host string, after uint64, f func(Change) error) error
	// TrimChanges forgets the changes of a host up to a number.
	TrimChanges(ctx context.Context, host string, upTo uint64) error
	// File returns one file; ok is false where there is none.
	File(ctx context.Context, host, path string) (f File, ok bool, err error)
}

// Change is one batch of a Journal.
type Change struct {
	Number    uint64
	IsDropped bool     // the host was forgotten with all files
	Paths     []string // of files that were put or deleted
}

// ErrNoChanges means that a Journal no longer has all changes that were asked for.
var ErrNoChanges = errors.New("the changes of the host are not kept that long")

// none is the Sink of a robot without one.
type none struct{}

func (none) Update(context.Context, string, []File, []string) error { return nil }
func (none) Online(string, bool)                                    {}
func (none) Drop(context.Context, string) error                     { return nil }

func toUnixSeconds(t time.Time) int64 { return t.Unix() }
