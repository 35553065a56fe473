package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// printJSON writes v as one indented JSON object on standard output.
func (g *globals) printJSON(v any) error {
	enc := json.NewEncoder(g.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// dataDir returns the data directory: --data, $FRESHET_DATA, or freshet's
// folder in the user's data directory (XDG).
func (g *globals) dataDir() (string, error) {
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
