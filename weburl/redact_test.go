package weburl_test

import (
	"strings"
	"testing"

	"github.com/freshet/freshet/weburl"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"", ""},
		{"no address at all: user@example.org", "no address at all: user@example.org"},
		{"ftp://carol:s3cret@nas/pub", "ftp://carol:xxxxx@nas/pub"},
		{"scan nosuch://carol:s3cret@..", "scan nosuch://carol:xxxxx@.."},
		{"ftp://carol:s3cret@/x", "ftp://carol:xxxxx@/x"},
		{"smb://DOM;carol:s3cret@10.0.0.0/24/share", "smb://DOM;carol:xxxxx@10.0.0.0/24/share"},
		{"smb://u:s3cret@one,two,[::1]:445/x", "smb://u:xxxxx@one,two,[::1]:445/x"},
		{"ftp://:s3cret@nas/", "ftp://:xxxxx@nas/"},
		{"ftp://u:s3@cret@nas/", "ftp://u:xxxxx@nas/"},
		{"ftp://u:s3/cret@nas/", "ftp://u:xxxxx@nas/"},
		{"ftp://u:s3 cret@nas/", "ftp://u:xxxxx@nas/"},
		{"ftp://u:s3?cret#@nas/", "ftp://u:xxxxx@nas/"},
		{"ftp://u:@nas/", "ftp://u:xxxxx@nas/"},
		{`parse "ftp://u:s3cret@nas:x/": invalid port ":x"`, `parse "ftp://u:xxxxx@nas:x/": invalid port ":x"`},
		{"a ftp://u:s3cret@a/ b smb://v:s3cret@b/ c", "a ftp://u:xxxxx@a/ b smb://v:xxxxx@b/ c"},
		{"postgres://freshet:s3cret@db:5432/name?sslmode=disable", "postgres://freshet:xxxxx@db:5432/name?sslmode=disable"},
		{"smb://carol@nas/share", "smb://carol@nas/share"},
		{"http://host:8080/a@b", "http://host:8080/a@b"},
		{"http://host:8080: connection refused, ask a@b", "http://host:8080: connection refused, ask a@b"},
		{"http://[::1]:80/a@b", "http://[::1]:80/a@b"},
		{"http://h/a:b@c", "http://h/a:b@c"},
		{"connect to http://h: refused", "connect to http://h: refused"},
	}
	for _, tt := range tests {
		if got := weburl.Redact(tt.text); got != tt.want {
			t.Errorf("Redact(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("u", "s3cret", "nas/x")
	f.Add("", "/", "")
	f.Fuzz(func(t *testing.T, user, password, rest string) {
		if strings.ContainsAny(user+password+rest, "/?# \t\r\n\"'`<>:@") || password == "" || strings.Contains("xxxxx", password) {
			t.Skip()
		}
		got := weburl.Redact("smb://" + user + ":" + password + "@" + rest)
		if want := "smb://" + user + ":xxxxx@" + rest; got != want {
			t.Errorf("Redact gives %q, want %q", got, want)
		}
	})
}
