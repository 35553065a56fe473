package crawl

import (
	"context"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/weburl"
)

// FetchAuxiliary fetches something that is no page of the robot's queue (the key file of a
// signal) as politely as pages. It fails with politeness.ErrHostRests if the host would have
// to be waited for too long.
func (r *Robot) FetchAuxiliary(ctx context.Context, u weburl.URL, accept string) (*fetch.Response, error) {
	return r.requests.Get(ctx, u, accept)
}

// requestObserver counts requests that are no pages.
type requestObserver struct{ robot *Robot }

// RequestFailed implements politeness.Observer.
func (o requestObserver) RequestFailed(url string, err error) { o.robot.stats.unanswered(url, err) }

// BytesReceived implements politeness.Observer.
func (o requestObserver) BytesReceived(n int64) { o.robot.stats.bytes.Add(n) }

// AgentsWaiting implements politeness.Observer.
func (o requestObserver) AgentsWaiting(change int) {
	r := o.robot
	r.mu.Lock()
	r.resting += change
	r.mu.Unlock()
	r.Wake()
}
