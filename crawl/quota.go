package crawl

import (
	"fmt"
	"time"

	"github.com/freshet/freshet/store"
)

// quotaPeriod is the time to which HostBytesDay refers. It begins with a body that is kept.
const quotaPeriod = 24 * time.Hour

// countKept counts a body that is archived of the host.
func countKept(h *store.Host, n int64, now time.Time) {
	if age := now.Sub(h.KeptSince); age >= quotaPeriod || age < 0 {
		h.Kept, h.KeptSince = 0, now
	}
	h.Kept += n
}

// restForQuota lets a host rest that has used up its bytes of the day, and reports whether
// it does: one host must not fill the disk that all others need.
func (r *Robot) restForQuota(h *store.Host, now time.Time) bool {
	limit := r.config.HostBytesDay
	if age := now.Sub(h.KeptSince); limit <= 0 || h.Kept < limit || age >= quotaPeriod || age < 0 {
		return false
	}
	h.Next = later(h.Next, h.KeptSince.Add(quotaPeriod))
	h.Reason, h.Error = store.ReasonStorageQuota, fmt.Sprintf("%d bytes were kept of it since %s, crawl.host_bytes_day is %d", h.Kept, h.KeptSince.UTC().Format(time.RFC3339), limit)
	r.stats.skip(store.ReasonStorageQuota)
	return true
}
