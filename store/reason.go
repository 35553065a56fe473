package store

import "strings"

// Reason says by a code why a page is not in state OK, or why a host cannot be asked. Codes
// are stored and compared; the text beside them (Page.Error, Host.Error) is for people and
// may be reworded or translated. A code never changes its meaning.
type Reason string

// Reasons of pages. A page that a trap keeps out has the kind of the trap as its reason.
const (
	ReasonRobotsRefused     Reason = "robots-refused"     // robots.txt forbids the URL
	ReasonRobotsUnavailable Reason = "robots-unavailable" // robots.txt could not be read: nothing may be fetched
	ReasonSourceRemoved     Reason = "source-removed"
	ReasonMirror            Reason = "mirror"
	ReasonDuplicate         Reason = "duplicate" // differs from another URL in parameters that change nothing
	ReasonContentType       Reason = "content-type"
	ReasonMalformedURL      Reason = "malformed-url"
	ReasonBadRecord         Reason = "bad-record" // no store can keep what the visit found
	ReasonArchive           Reason = "archive"    // the body could not be kept
	ReasonStorageQuota      Reason = "storage-quota"
	ReasonServerError       Reason = "server-error" // status 5xx
	ReasonOverloaded        Reason = "overloaded"   // status 429 or 503
	ReasonNoAnswer          Reason = "no-answer"    // no connection, or none that could be understood
	ReasonRedirectLoop      Reason = "redirect loop"
	ReasonParserFailed      Reason = "parser-failed" // reasons of OK pages without content; also the PDF ones
	ReasonPDFTime           Reason = "pdf-time-limit"
	ReasonPDFMemory         Reason = "pdf-memory-limit"
	ReasonPDFCrash          Reason = "pdf-crash"
	ReasonPDFDamaged        Reason = "pdf-damaged"
	ReasonPDFPassword       Reason = "pdf-password"
	ReasonPDFUnread         Reason = "pdf-reader-unavailable"
	ReasonUnknown           Reason = "unknown" // of a record that an earlier format wrote
)

// ReasonRobotsNoAnswer is a reason of hosts, as ReasonOverloaded and ReasonNoAnswer are.
const ReasonRobotsNoAnswer Reason = "robots-no-answer" // a request for robots.txt was not answered

// Reasons of URLs that are found and not queued; no record has them.
const (
	ReasonNoFollow   Reason = "nofollow"
	ReasonOutOfScope Reason = "out-of-scope"
	ReasonTooDeep    Reason = "too-deep"
	ReasonFiltered   Reason = "filtered" // by a rule of the source
	// ReasonBlockedPort is of URLs whose port is of a service that is not the web.
	ReasonBlockedPort Reason = "blocked-port"
)

var reasonTexts = map[Reason]string{
	ReasonRobotsRefused: "robots.txt", ReasonRobotsUnavailable: "robots.txt unavailable", ReasonSourceRemoved: "source removed", ReasonMirror: "mirror of another host", ReasonDuplicate: "duplicate of another URL of the host",
	ReasonContentType: "content type", ReasonMalformedURL: "malformed URL", ReasonBadRecord: "record that cannot be stored", ReasonArchive: "body that cannot be stored",
	ReasonStorageQuota: "storage quota of the host", ReasonServerError: "server error", ReasonOverloaded: "server overloaded", ReasonNoAnswer: "no answer",
	ReasonRobotsNoAnswer: "robots.txt: no answer", ReasonNoFollow: "nofollow", ReasonOutOfScope: "out of scope", ReasonTooDeep: "too deep", ReasonFiltered: "excluded by a rule", ReasonBlockedPort: "port of another service",
	ReasonParserFailed: "the parser failed on the content; it is not read again until it changes",
	ReasonPDFTime:      "PDF exceeds the time limit (pdf.max_time); it is not read again until it changes",
	ReasonPDFMemory:    "PDF exceeds the memory limit (pdf.max_memory); it is not read again until it changes",
	ReasonPDFCrash:     "PDF crashed its reader; it is not read again until it changes",
	ReasonPDFDamaged:   "PDF is damaged", ReasonPDFPassword: "PDF needs a password", ReasonPDFUnread: "the PDF reader could not be started; the next visit tries again",
}

// Text is what the interface shows for a reason.
func (r Reason) Text() string {
	if t, ok := reasonTexts[r]; ok {
		return t
	}
	return string(r)
}

// Texts that formats without reasons wrote into the records of pages and hosts.
var (
	oldPageTexts = map[string]Reason{
		"robots.txt cannot be had": ReasonRobotsUnavailable, "robots.txt": ReasonRobotsRefused, "source taken back": ReasonSourceRemoved, "malformed": ReasonMalformedURL,
		"status 429": ReasonOverloaded, "status 503": ReasonOverloaded,
	}
	oldPagePrefixes = []struct {
		prefix string
		reason Reason
	}{{"mirror of ", ReasonMirror}, {"content type ", ReasonContentType}, {"archive: ", ReasonArchive}, {"status 5", ReasonServerError}}
)

// AddReason gives a record that was written without a reason the one that its text meant.
// It is the only place that reads meaning from a text.
func (p *Page) AddReason() {
	if p.Reason != "" || p.Error == "" {
		return
	}
	if r, ok := oldPageTexts[p.Error]; ok {
		p.Reason = r
		return
	}
	for _, o := range oldPagePrefixes {
		if strings.HasPrefix(p.Error, o.prefix) {
			p.Reason = o.reason
			return
		}
	}
	switch p.State {
	case Failed:
		p.Reason = ReasonNoAnswer
	case Excluded: // the text was the kind of a trap
		p.Reason = Reason(p.Error)
	default:
		p.Reason = ReasonUnknown
	}
}

// AddReason is Page.AddReason for a host.
func (h *Host) AddReason() {
	switch {
	case h.Reason != "" || h.Error == "":
	case strings.HasPrefix(h.Error, "robots.txt: "):
		h.Reason = ReasonRobotsNoAnswer
	case strings.HasPrefix(h.Error, "status "):
		h.Reason = ReasonOverloaded
	default:
		h.Reason = ReasonNoAnswer
	}
}
