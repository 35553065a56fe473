package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updateLicenses = flag.Bool("update-licenses", false, "write THIRD_PARTY_LICENSES")

// licenseFile matches the names of files that a module's terms are in.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([-._].*)?$`)

// thirdPartyLicenses returns the terms of every module that is linked into freshet.
func thirdPartyLicenses(t *testing.T) []byte {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}", ".")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list, err)
	}
	modules := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(modules)
	var b bytes.Buffer
	b.WriteString("Terms of the modules that are linked into freshet.\n")
	for _, m := range slices.Compact(modules) {
		f := strings.Fields(m)
		if len(f) != 3 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n%s %s\n", strings.Repeat("=", 80), f[0], f[1])
		files, err := os.ReadDir(f[2])
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range files {
			if e.IsDir() || !licenseFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(f[2], e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "\n--- %s\n\n%s\n", e.Name(), bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
			found = true
		}
		if !found {
			t.Errorf("%s %s has no license file", f[0], f[1])
		}
	}
	return b.Bytes()
}

func TestThirdPartyLicenses(t *testing.T) {
	const path = "../../THIRD_PARTY_LICENSES"
	want := thirdPartyLicenses(t)
	if *updateLicenses {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("THIRD_PARTY_LICENSES is not that of the linked modules (%v): run go test ./cmd/freshet -run TestThirdPartyLicenses -update-licenses", err)
	}
}
