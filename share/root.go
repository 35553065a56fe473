package share

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/freshet/freshet/share/part"
	"github.com/freshet/freshet/share/source"
)

// emptyRootRetry is for how many seconds a root that lost all its files counts as
// offline. A mount that is not there leaves an empty folder, or another file system.
const emptyRootRetry = 24 * 3600

// maxRootNames bounds the stored names that are looked for in the root.
const maxRootNames = 100

// confirmRoot looks at the host's root before a scan removes anything: only a root
// that is still the one that was scanned tells that files are gone. A local root is
// known by its device and inode. Any other must not be empty; a local one that is
// not the one of before must list a name that is stored. A root in doubt is an
// error, as of an offline host, for a day.
func (s *scan) confirmRoot(ctx context.Context) error {
	if s.rootSeen {
		return nil
	}
	s.counts.Listings++
	known, err := s.knownNames(ctx)
	if err != nil {
		return err
	}
	entries, familiar := 0, false
	err = source.Each(ctx, s.src, "", func(list []source.Entry) error {
		entries += len(list)
		familiar = familiar || slices.ContainsFunc(list, func(e source.Entry) bool { return known[e.Name] })
		return nil
	})
	if err != nil {
		class := source.ClassOf(err)
		if !class.Lost() {
			class = source.Offline
		}
		return &source.Error{Op: "list", Path: "/", Class: class, Err: fmt.Errorf("the root cannot be read at the end of a scan: %w", err)}
	}
	if err := s.sameRoot(ctx); err != nil {
		return err
	}
	h, identity := s.host, s.identity
	sure := identity != "" && identity == h.root
	if !sure && entries > 0 {
		sure = familiar || identity == "" || h.root == ""
	}
	if sure {
		h.doubt = 0
	} else if err := s.doubtRoot(entries, len(known) > 0); err != nil {
		return err
	}
	s.rootSeen = true
	return nil
}

// rootIdentity returns what tells the root from another folder in its place; "" of
// a network host.
func (s *scan) rootIdentity(ctx context.Context) (string, error) {
	i, ok := s.src.(source.Identifier)
	if !ok {
		return "", nil
	}
	identity, err := i.Identity(ctx)
	if err != nil {
		return "", &source.Error{Op: "stat", Path: "/", Class: source.Offline, Err: err}
	}
	return identity, nil
}

// sameRoot returns an error if the root was replaced since the scan began.
func (s *scan) sameRoot(ctx context.Context) error {
	now, err := s.rootIdentity(ctx)
	if err == nil && now != s.identity {
		err = &source.Error{Op: "stat", Path: "/", Class: source.Offline, Err: errors.New("another folder took the root's place during the scan: was it unmounted?")}
	}
	return err
}

// doubtRoot returns an error while a root that lost its files is not believed.
func (s *scan) doubtRoot(entries int, filesKnown bool) error {
	h := s.host
	if !filesKnown {
		return nil
	}
	if h.doubt == 0 || h.doubt > s.now {
		h.doubt = s.now
	}
	if s.now-h.doubt >= emptyRootRetry {
		return nil // it stayed so
	}
	what := "the root folder is empty"
	if entries > 0 {
		what = "another file system with no known name lies at the root"
	}
	return &source.Error{
		Op: "list", Path: "/", Class: source.Offline,
		Err: fmt.Errorf("%s, although files are known: is it mounted? After a day of this the files are removed", what),
	}
}

// errFound ends a loop over stored files.
var errFound = errors.New("found")

// knownNames returns the first names that are stored of the root.
func (s *scan) knownNames(ctx context.Context) (map[string]bool, error) {
	known, low := map[string]bool{}, ""
	for len(known) < maxRootNames {
		next := ""
		err := s.store.Files(ctx, s.host.name, low, "", func(key string, f *File) error {
			name, _, below := strings.Cut(f.Path, "/")
			next = key + "\x00"
			if below {
				_, next = part.Part{Folder: name}.Range()
			}
			known[name] = true
			return errFound
		})
		if err == nil {
			break // no more
		}
		if !errors.Is(err, errFound) {
			return nil, err
		}
		low = next
	}
	return known, nil
}
