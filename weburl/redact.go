package weburl

import "strings"

// Redact returns text with the passwords of all URLs in it replaced by "xxxxx".
// Text may be a URL, an address range, a list of hosts, a malformed URL or an
// error message with any of these. Addresses without a password stay as they are.
func Redact(text string) string {
	var out strings.Builder
	for {
		i := strings.Index(text, "://")
		if i < 0 {
			out.WriteString(text)
			return out.String()
		}
		i += len("://")
		out.WriteString(text[:i])
		text = text[i:]
		if user, rest, ok := cutPassword(text); ok {
			out.WriteString(user)
			out.WriteString(":xxxxx@")
			text = rest
		}
	}
}

// cutPassword splits what follows a scheme into the user and the rest behind the
// '@'; ok is false where there is no password.
func cutPassword(s string) (user, rest string, ok bool) {
	end := strings.IndexAny(s, "/?# \t\r\n\"'`<>")
	if end < 0 {
		end = len(s)
	}
	at := strings.LastIndexByte(s[:end], '@')
	colon := strings.IndexByte(s[:end], ':')
	if at < 0 && colon >= 0 && s[0] != '[' && !isPort(s[colon+1:end]) {
		// No port: a password with a slash, a space or a quote that was not escaped.
		line, _, _ := strings.Cut(s, "\n")
		if next := strings.Index(line, "://"); next >= 0 {
			line = line[:next]
		}
		at = strings.LastIndexByte(line, '@')
	}
	if at < 0 || colon < 0 || colon > at {
		return "", "", false
	}
	return s[:colon], s[at+1:], true
}

// isPort reports whether s is a port number, perhaps with the punctuation of an
// error message or further hosts of a list behind it.
func isPort(s string) bool {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if digits == 0 {
		return strings.Trim(s, ":.,;)]}") == ""
	}
	return digits <= 5 && (digits == len(s) || strings.ContainsRune(":.,;)]}", rune(s[digits])))
}
