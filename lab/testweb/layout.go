package testweb

import (
	"fmt"
	"math"
	"sort"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/testweb/name"
)

// Layout says which host each page stands on. Hosts are numbered from 0, and the
// pages of a host are consecutive: a graph with sites of its own implements it.
type Layout interface {
	// Hosts returns the number of hosts.
	Hosts() uint64
	// Host returns the host of a page.
	Host(page uint64) uint64
	// Span returns the first page of a host and the number of its pages.
	Span(host uint64) (first, pages uint64)
}

// Even is a layout of hosts of one size; Pages is a multiple of Sites.
type Even struct{ Pages, Sites uint64 }

// Hosts implements Layout.
func (e Even) Hosts() uint64 { return e.Sites }

// Host implements Layout.
func (e Even) Host(page uint64) uint64 { return page / (e.Pages / e.Sites) }

// Span implements Layout.
func (e Even) Span(host uint64) (first, pages uint64) {
	each := e.Pages / e.Sites
	return host * each, each
}

// sizeExponent is the exponent of the number of pages of a site (Huberman and
// Adamic, Nature 401, 1999: 1.8 to 1.9 measured; 2.1 keeps the mean finite).
const sizeExponent = 2.1

// blockHosts is the greatest number of hosts in a block of a Sites layout.
const blockHosts = 1024

// templates is the number of different blocks.
const templates = 16

// Sites lays a web out on hosts with power-law numbers of pages, without a table
// of hosts: the web is a row of blocks of equal numbers of hosts and pages, and
// each block has one of a few precomputed divisions, chosen by its hash. Finding
// the host of a page is a division and a binary search, whatever the size.
type Sites struct {
	pages, hosts         uint64
	perBlock, blockPages uint64
	seed                 uint64
	starts               [templates][]uint64 // first page of each host in the block, and the end
}

// NewSites lays pages out on about hosts sites; 0 hosts means one for 64 pages,
// or more pages each where the addresses would run out. An error says that so many hosts have no addresses, or
// fewer pages than hosts.
func NewSites(pages, hosts, seed uint64) (*Sites, error) {
	if pages == 0 {
		return nil, fmt.Errorf("web of no pages")
	}
	if hosts == 0 {
		hosts = min((pages+63)/64, name.Hosts()-blockHosts)
	}
	if hosts > name.Hosts()-blockHosts || hosts > pages {
		return nil, fmt.Errorf("%d hosts for %d pages: at most one for a page and %d in all", hosts, pages, name.Hosts()-blockHosts)
	}
	blocks := (hosts + blockHosts - 1) / blockHosts
	s := &Sites{pages: pages, seed: seed, perBlock: (hosts + blocks - 1) / blocks}
	s.blockPages = (pages + blocks - 1) / blocks
	for t := range s.starts {
		s.starts[t] = divideAmongHosts(s.blockPages, s.perBlock, rng.Mix(seed, uint64(t)))
	}
	s.hosts = s.Host(pages-1) + 1
	return s, nil
}

// divideAmongHosts divides pages among hosts by the quantiles of the power law, in an
// order drawn by key, each host at least one page.
func divideAmongHosts(pages, hosts, key uint64) []uint64 {
	weight := make([]float64, hosts)
	var sum float64
	for i := range weight {
		weight[i] = math.Pow((float64(i)+.5)/float64(hosts), -1/(sizeExponent-1))
		sum += weight[i]
	}
	size := make([]uint64, hosts)
	left := pages - hosts
	for i := range size {
		extra := uint64(float64(pages-hosts) * weight[i] / sum)
		size[i] = 1 + extra
		left -= extra
	}
	for i := uint64(0); left > 0; i++ { // what rounding left, from the greatest on
		size[i%hosts]++
		left--
	}
	r := rng.New(key, "sites")
	r.Shuffle(len(size), func(i, j int) { size[i], size[j] = size[j], size[i] })
	starts := make([]uint64, hosts+1)
	for i, n := range size {
		starts[i+1] = starts[i] + n
	}
	return starts
}

func (s *Sites) blockStarts(b uint64) []uint64 {
	return s.starts[rng.Mix(s.seed, b)%templates]
}

// Hosts returns the number of hosts.
func (s *Sites) Hosts() uint64 { return s.hosts }

// Host returns the host of a page.
func (s *Sites) Host(page uint64) uint64 {
	b, off := page/s.blockPages, page%s.blockPages
	starts := s.blockStarts(b)
	i := sort.Search(len(starts), func(i int) bool { return starts[i] > off }) - 1
	return b*s.perBlock + uint64(i)
}

// Span returns the first page of a host and the number of its pages.
func (s *Sites) Span(host uint64) (first, pages uint64) {
	b, i := host/s.perBlock, host%s.perBlock
	starts := s.blockStarts(b)
	first = b*s.blockPages + starts[i]
	return first, min(b*s.blockPages+starts[i+1], s.pages) - first
}
