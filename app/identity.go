package app

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/weburl"
)

// identitiesOf returns what requests to the origins of the sources say beyond the robot's
// name: user agent, headers, login. An origin is scheme, host and port. Where several
// sources have the same origin, the first that sets a field decides on it.
func identitiesOf(sources []config.Source) (func(origin string) *fetch.Identity, error) {
	known := map[string]*fetch.Identity{}
	for i := range sources {
		s := &sources[i]
		if s.Share() || s.UserAgent == "" && len(s.Headers) == 0 && s.User == "" {
			continue
		}
		u, err := weburl.Parse(s.URL)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", weburl.Redact(s.URL), err)
		}
		id := known[u.Origin()]
		if id == nil {
			id = &fetch.Identity{Header: http.Header{}}
			known[u.Origin()] = id
		}
		id.UserAgent = cmp.Or(id.UserAgent, s.UserAgent)
		if err := addFields(id.Header, s, u); err != nil {
			return nil, err
		}
	}
	if len(known) == 0 {
		return nil, nil
	}
	return func(origin string) *fetch.Identity { return known[origin] }, nil
}

// addFields adds the headers and the login of a source that are not set yet.
func addFields(h http.Header, s *config.Source, u weburl.URL) error {
	for name, value := range s.Headers {
		if h.Get(name) == "" {
			h.Set(name, value)
		}
	}
	if s.User == "" || h.Get("Authorization") != "" {
		return nil
	}
	password, err := passwordOf(s, u.Hostname())
	if err != nil {
		return err
	}
	h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(s.User+":"+password)))
	return nil
}

// passwordOf returns the password of a source: its own, that of its file, or that of
// $FRESHET_PASSWORD_<HOST>, the host's name in capitals with _ for all but letters and
// digits. $FRESHET_SHARE_PASSWORD_<HOST> is the older name of the variable.
func passwordOf(s *config.Source, host string) (string, error) {
	switch {
	case s.Password != "":
		return s.Password, nil
	case s.PasswordFile != "":
		text, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return "", fmt.Errorf("source %s: password_file: %w", weburl.Redact(s.URL), err)
		}
		return strings.TrimRight(string(text), "\r\n"), nil
	}
	suffix := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= '0' && r <= '9' || r >= 'A' && r <= 'Z':
			return r
		}
		return '_'
	}, host)
	return cmp.Or(os.Getenv("FRESHET_PASSWORD_"+suffix), os.Getenv("FRESHET_SHARE_PASSWORD_"+suffix)), nil
}
