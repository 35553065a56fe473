package sweep

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/freshet/freshet/lab/monitor"
)

// Run is the outcome of a job.
type Run struct {
	Factors
	Variant     string `json:"variant"`
	Replication int    `json:"replication"`
	monitor.Result
	Series monitor.Series `json:"series"`
}

// sealed is a result file: the run and a digest that detects damage.
type sealed struct {
	SHA256 string          `json:"sha256"`
	Run    json.RawMessage `json:"run"`
}

// ErrDamaged is in errors about result files that do not hold what was written.
var ErrDamaged = errors.New("damaged result file")

// Path returns the file of a job's result.
func (j Job) Path(dir string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '+':
			return r
		}
		return '-'
	}, j.Variant)
	return filepath.Join(dir, "runs", fmt.Sprintf("%04d-%s-r%d.json", j.Factors.Field, safe, j.Replication))
}

// saveResult writes a result so that it appears whole or not at all.
func saveResult(path string, r *Run) error {
	run, err := json.Marshal(r)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(run)
	text, err := json.Marshal(sealed{hex.EncodeToString(digest[:]), run})
	if err != nil {
		return err
	}
	return writeFile(path, append(text, '\n'))
}

// writeFile writes a file that takes its name when all of it is on the disk.
func writeFile(path string, text []byte) error { return replaceFile(path, text, true) }

// replaceFile writes a file that takes its name when all of it is there; lasting is
// to survive the machine too.
func replaceFile(path string, text []byte, lasting bool) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	if lasting {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// loadResult reads the result of a job. The error is fs.ErrNotExist if it was not run
// yet, ErrDamaged if the file does not hold what was written for this job.
func loadResult(dir string, j Job) (*Run, error) {
	path := j.Path(dir)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s sealed
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrDamaged, path, err)
	}
	digest := sha256.Sum256(bytes.TrimSpace(s.Run))
	if hex.EncodeToString(digest[:]) != s.SHA256 {
		return nil, fmt.Errorf("%w %s: its digest is not that of its content", ErrDamaged, path)
	}
	r := &Run{}
	if err := json.Unmarshal(s.Run, r); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrDamaged, path, err)
	}
	if !r.isRunOf(j.Factors) || r.Variant != j.Variant || r.Replication != j.Replication {
		return nil, fmt.Errorf("%w %s: it is of another run: field %d, %s, replication %d", ErrDamaged, path, r.Field, r.Variant, r.Replication)
	}
	return r, nil
}

// isRunOf reports whether a run is of a field of the plan.
func (r *Run) isRunOf(f Factors) bool {
	if f.File != "" {
		return r.Field == f.Field && r.File == f.File
	}
	return r.Factors == f
}

// planName is the file name of the plan's copy next to the results.
const planName = "plan.yaml"

// claimDirectory makes dir the home of a plan's results, or finds that it is.
func claimDirectory(dir string, text []byte) error {
	if err := os.MkdirAll(filepath.Join(dir, "runs"), 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, planName)
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return writeFile(path, text)
	case err != nil:
		return err
	case !bytes.Equal(old, text):
		return fmt.Errorf("%w: %s holds results of another plan (%s differs): give another directory", ErrInput, dir, path)
	}
	return nil
}
