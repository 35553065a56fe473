package local

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// upgradeBatch is how many bytes of changes an upgrade writes at once.
const upgradeBatch = 4 << 20

// upgradeFormat brings a store of an earlier format to the present one. It reads every record once.
func (s *Store) upgradeFormat() error {
	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	err := s.scanPrefix([]byte{pageSpace}, func(k, v []byte) error {
		var p store.Page
		err := decodePage(v, &p)
		p.Key = weburl.Key(k[spaceLength:])
		switch {
		case err != nil:
			return err
		case !p.IsNamed():
			err = dropUnnamed(b, &p)
		case p.Canonical != "":
			err = s.addAlias(b, &p)
		}
		if err != nil || b.Len() < upgradeBatch {
			return err
		}
		err = b.Commit(s.write)
		b.Reset()
		return err
	})
	if err != nil {
		return err
	}
	s.told = s.seq
	return b.Commit(s.write)
}

// dropUnnamed takes out a page whose URL is not parsed as the URL that its key names: no
// visit of it could ever be committed, and nothing but its place in the queue is known. If it
// exists, it is found again by its links.
func dropUnnamed(b *pebble.Batch, p *store.Page) error {
	drops := [][]byte{pageKey(p.Key), linkKey(p.Key)}
	if slot := slotKey(p.Key, p.Slot); slot != nil {
		drops = append(drops, slot)
	}
	for _, key := range drops {
		if err := b.Delete(bytes.Clone(key), nil); err != nil {
			return err
		}
	}
	return nil
}

// addAlias notes which page a page names as canonical, and puts it into the feed: earlier
// programs took all such pages out of the index.
func (s *Store) addAlias(b *pebble.Batch, p *store.Page) error {
	target, ok := p.AliasOf()
	if !ok || !p.Held() {
		return nil
	}
	s.seq++
	v, err := appendChange(nil, p.Key, &store.Change{Seq: s.seq, URL: p.URL, Time: p.History.Changed})
	return errors.Join(err, b.Set(aliasKey(target, p.Key), nil, nil), b.Set(numberKey(feedSpace, s.seq), v, nil))
}
