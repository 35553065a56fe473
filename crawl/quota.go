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

// restForQuota lets a host rest that has used up its bytes of the day (0 is no limit), and
// reports whether it does: one host must not fill the disk that all others need.
func (r *Robot) restForQuota(h *store.Host, limit int64, now time.Time) bool {
	if age := now.Sub(h.KeptSince); limit <= 0 || h.Kept < limit || age >= quotaPeriod || age < 0 {
		return false
	}
	h.Next = later(h.Next, h.KeptSince.Add(quotaPeriod))
	h.Reason, h.Error = store.ReasonStorageQuota, fmt.Sprintf("%d bytes were kept of it since %s, %d a day are allowed (budget_bytes of its source, or crawl.host_bytes_day)", h.Kept, h.KeptSince.UTC().Format(time.RFC3339), limit)
	r.stats.skip(store.ReasonStorageQuota)
	return true
}
