package webgraph

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zeebo/xxh3"
)

// Names of the files of a stored graph.
const (
	metaFile       = "graph.json"
	outStartsFile  = "out.starts"
	outLinksFile   = "out.links"
	inStartsFile   = "in.starts"
	inLinksFile    = "in.links"
	sitesFile      = "sites"
	namesFile      = "names"
	nameStartsFile = "names.starts"
)

// formatName and formatVersion stand in graph.json.
const (
	formatName    = "freshet-webgraph"
	formatVersion = 1
	codedVersion  = 2 // of graphs whose links are coded
)

// Meta is the content of graph.json.
type Meta struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Nodes   int64  `json:"nodes"`
	Links   int64  `json:"links"`
	Sites   int64  `json:"sites"`
	Names   int64  `json:"name_bytes,omitempty"` // of all names together
	// Sorted says that the links of each page ascend, each once.
	Sorted bool `json:"sorted"`
	// Coded says that the links are coded.
	Coded bool `json:"coded,omitempty"`
	// Made tells what made the graph: a generator with its parameters, or an import.
	Made json.RawMessage `json:"made,omitempty"`

	Files   []FileInfo   `json:"files"`
	Columns []ColumnInfo `json:"columns,omitempty"`
	// Checksum is that of this object without it.
	Checksum string `json:"checksum,omitempty"`
}

// FileInfo is the size and the checksum of a file.
type FileInfo struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	XXH3  string `json:"xxh3"`
	// Chunks are the checksums of each 16 MiB of a greater file.
	Chunks []string `json:"chunks,omitempty"`
}

// DamagedError says which file of a stored graph is not what was written.
type DamagedError struct {
	File string // path
	Why  string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s: damaged: %s; make the graph again", e.File, e.Why)
}

func (m *Meta) fileNamed(name string) *FileInfo {
	for i := range m.Files {
		if m.Files[i].Name == name {
			return &m.Files[i]
		}
	}
	return nil
}

func (m *Meta) computeChecksum() (string, error) {
	c := *m
	c.Checksum = ""
	b, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	return sumString(xxh3.Hash(b)), nil
}

func sumString(h uint64) string {
	return hex.EncodeToString([]byte{
		byte(h >> 56), byte(h >> 48), byte(h >> 40), byte(h >> 32), byte(h >> 24), byte(h >> 16), byte(h >> 8), byte(h),
	})
}

// writeMeta writes graph.json so that it is the old one or the new one, never half.
func (m *Meta) writeMeta(dir string) (err error) {
	if len(m.Made) == 0 {
		m.Made = nil
	}
	if m.Checksum, err = m.computeChecksum(); err != nil {
		return err
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, metaFile)
	if err := writeSyncedFile(path+".new", append(b, '\n')); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func writeSyncedFile(path string, b []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// readMeta reads graph.json and checks what it says of itself.
func readMeta(dir string) (Meta, error) {
	var m Meta
	path := filepath.Join(dir, metaFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(dir); err != nil {
			return m, err
		}
		return m, fmt.Errorf("%s: no stored graph: there is no %s in it", dir, metaFile)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, &DamagedError{path, err.Error()}
	}
	if m.Format != formatName {
		return m, fmt.Errorf("%s: not of a stored graph: the format is %.40q, want %q", path, m.Format, formatName)
	}
	if m.Version != formatVersion && (m.Version != codedVersion || !m.Coded) {
		return m, fmt.Errorf("%s: version %d of the format; this program reads versions %d and %d", path, m.Version, formatVersion, codedVersion)
	}
	if sum, err := m.computeChecksum(); err != nil || sum != m.Checksum {
		return m, &DamagedError{path, "its checksum is wrong"}
	}
	if m.Nodes < 1 || m.Nodes > MaxNodes || m.Links < 0 || m.Sites < 0 || m.Names < 0 || m.Sites > m.Nodes {
		return m, &DamagedError{path, fmt.Sprintf("%d pages, %d links, %d sites", m.Nodes, m.Links, m.Sites)}
	}
	for _, f := range m.Files {
		if f.Bytes < 0 || !f.chunksFit() || filepath.Base(f.Name) != f.Name {
			return m, &DamagedError{path, fmt.Sprintf("file %.40q of %d bytes with %d checksums", f.Name, f.Bytes, len(f.Chunks))}
		}
	}
	return m, nil
}
