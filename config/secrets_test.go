package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No password that stands in a configuration is printed or stands in an error.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	const word = "s3cret-word"
	dir := t.TempDir()
	file := filepath.Join(dir, "freshet.yaml")
	text := `database: postgres://freshet:` + word + `@db/freshet
crawl: {proxy: "http://user:` + word + `@proxy:3128"}
console: {password: ` + word + `, tokens: [` + word + `-long-enough]}
signals: {secrets: {www: ` + word + `}, topics: ["http://u:` + word + `@feed.example/"]}
sources: [{url: "ftp://carol:` + word + `@nas/films", password: ` + word + `}]
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := c.Print(&out); err != nil || strings.Contains(out.String(), word) || !strings.Contains(out.String(), "carol") {
		t.Errorf("printed with %v: %s", err, out.String())
	}
	for _, set := range []string{
		"database=mysql://u:" + word + "@h/d", "console.tokens={" + word + ": 1}", "signals.secrets=[" + word + "]", "console.tokens=" + word,
		"sources=[{url: 'nosuch ftp://u:" + word + "@h'}]", "console.public_url=ftp://u:" + word + "@h/", "crawl.proxie=http://u:" + word + "@h",
	} {
		if _, err := Load("", nil, []string{set}); err == nil || strings.Contains(err.Error(), word) {
			t.Errorf("--set %s: %v", set, err)
		}
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CheckMode(file, c); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that everybody can read: %v", err)
	}
	if err := CheckMode(file, Default()); err != nil {
		t.Errorf("without secrets: %v", err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := CheckMode(file, c); err != nil {
		t.Errorf("a private file: %v", err)
	}
}
