package local

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/storetest"
)

// disk is a file system in memory that crashes: what was not synced is lost, or
// some of it is not.
type disk struct {
	fs   *vfs.MemFS
	keep int // percent of what was not synced that survives
	rng  *rand.Rand
	// hosts in memory
	hosts int
}

// open opens the store that the disk holds.
func (d *disk) open(t *testing.T) store.Store {
	t.Helper()
	s, err := Open("store", Config{FS: d.fs, memory: 64 << 10, Hosts: d.hosts})
	if err != nil {
		t.Fatal(err)
	}
	return &mortal{s, d}
}

// mortal is a store whose Close is a crash of the machine.
type mortal struct {
	*Store
	disk *disk
}

// Close takes the disk as a crash would leave it.
func (m *mortal) Close() error {
	after := m.disk.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: m.disk.keep, RNG: m.disk.rng})
	err := m.Store.Close()
	m.disk.fs = after
	return err
}

// Whatever part of the writes in flight a crash of the machine keeps, all that
// was acknowledged is there, and nothing else: the whole conformance suite, and
// long random histories, with crashes in place of every Close.
func TestMachineCrash(t *testing.T) {
	t.Parallel()
	for _, keep := range []int{0, 50, 100} {
		fresh := func(seed uint64) *disk {
			return &disk{fs: vfs.NewCrashableMem(), keep: keep, rng: rand.New(rand.NewPCG(seed, uint64(keep))), hosts: 1 + int(seed%3)}
		}
		t.Run(fmt.Sprintf("suite, %d %% of unsynced data kept", keep), func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(*testing.T) storetest.Opener { return fresh(1).open })
		})
		t.Run(fmt.Sprintf("histories, %d %% of unsynced data kept", keep), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(6) {
				storetest.History(t, fresh(seed).open, seed, 400)
			}
		})
	}
}
