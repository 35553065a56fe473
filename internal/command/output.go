package command

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// PrintJSON writes v as one indented JSON object on standard output.
func (g *Globals) PrintJSON(v any) error {
	enc := json.NewEncoder(g.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// DataDir returns the data directory: --data, $FRESHET_DATA, or freshet's
// folder in the user's data directory (XDG).
func (g *Globals) DataDir() (string, error) {
	if g.Data != "" {
		return g.Data, nil
	}
	if d := os.Getenv("XDG_DATA_HOME"); d != "" {
		return filepath.Join(d, "freshet"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the data directory: %w (give --data DIR)", err)
	}
	return filepath.Join(home, ".local", "share", "freshet"), nil
}

// Logger writes structured logs to standard error; --quiet leaves errors.
func (g *Globals) Logger() *slog.Logger {
	level := slog.LevelWarn
	if g.Verbose {
		level = slog.LevelInfo
	}
	if g.Quiet {
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(g.Stderr, &slog.HandlerOptions{Level: level}))
}
