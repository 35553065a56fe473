package store

import (
	"errors"
	"fmt"
	"math"

	"github.com/freshet/freshet/weburl"
)

// PageError is the error of a batch that cannot be written because of one of its visits.
// The lease still holds: the batch can be committed without that visit, or with a plainer
// record of its page.
type PageError struct {
	Key weburl.Key
	URL string
	Err error
}

// Error implements error.
func (e *PageError) Error() string { return fmt.Sprintf("page %q: %v", e.URL, e.Err) }

// Unwrap returns what is wrong with the page.
func (e *PageError) Unwrap() error { return e.Err }

// HostError is the error of a batch that cannot be written because of the record of its
// host. The lease still holds, as after a PageError.
type HostError struct {
	Host string
	Err  error
}

// Error implements error.
func (e *HostError) Error() string { return fmt.Sprintf("host %q: %v", e.Host, e.Err) }

// Unwrap returns what is wrong with the record.
func (e *HostError) Unwrap() error { return e.Err }

// IsInputError reports whether a batch was refused because of what one page or its host
// brought, so that the lease still holds and the rest can be written.
func IsInputError(err error) bool {
	var page *PageError
	var host *HostError
	return errors.As(err, &page) || errors.As(err, &host)
}

// Errors of visits that no engine takes.
var (
	ErrNotTaken = errors.New("it was not taken under this lease")
	ErrTwice    = errors.New("it is twice in the batch")
)

// maxYear is the last year that can be written in JSON.
const maxYear = 9999

// Check returns why no engine can keep the record, or nil. Both engines ask, so that they
// refuse the same records.
func (p *Page) Check() error {
	switch p.State {
	case Queued, OK, Redirect, Gone, Blocked, Failed, Excluded:
	default:
		return fmt.Errorf("unknown state %q", p.State)
	}
	for _, x := range []float64{p.History.Visits, p.History.Changes, p.History.Time} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("history has the number %v", x)
		}
	}
	for what, year := range map[string]int{"due": p.Slot.Due.Year(), "visited": p.History.Last.Year(), "changed": p.History.Changed.Year(), "expires": p.Expires.Year(), "failing since": p.FailingSince.Year()} {
		if year < 0 || year > maxYear {
			return fmt.Errorf("%s in the year %d", what, year)
		}
	}
	return nil
}

// CheckVisits returns a PageError for the first visit of a batch that cannot be committed,
// or nil. taken says whether a page is out under the lease.
func CheckVisits(visits []Visit, taken func(weburl.Key) bool) error {
	seen := make(map[weburl.Key]bool, len(visits))
	for i := range visits {
		p := &visits[i].Page
		err := p.Check()
		switch {
		case !taken(p.Key):
			err = ErrNotTaken
		case seen[p.Key]:
			err = ErrTwice
		}
		if err != nil {
			return &PageError{p.Key, p.URL, err}
		}
		seen[p.Key] = true
	}
	return nil
}

// IsNamed reports whether the URL of a record is parsed as the URL that its key names. Stores
// of earlier formats hold pages for which that is not so: they could never be committed.
func (p *Page) IsNamed() bool {
	u, err := weburl.Parse(p.URL)
	return err == nil && u.Key() == p.Key
}
