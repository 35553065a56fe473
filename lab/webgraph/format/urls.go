package format

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
)

// URLs are links between URLs, gathered to be numbered: pages of a host are
// consecutive, and hosts of a domain stand together. All URLs are kept in memory,
// about 150 bytes each, and 8 bytes a link.
type URLs struct {
	number map[string]uint32
	names  []string
	links  [][2]uint32
}

// NewURLs returns an empty set.
func NewURLs() *URLs { return &URLs{number: map[string]uint32{}} }

// Add adds a link.
func (u *URLs) Add(from, to string) error {
	a, err := u.internURL(from)
	if err != nil {
		return err
	}
	b, err := u.internURL(to)
	if err != nil {
		return err
	}
	u.links = append(u.links, [2]uint32{a, b})
	return nil
}

func (u *URLs) internURL(name string) (uint32, error) {
	if n, ok := u.number[name]; ok {
		return n, nil
	}
	p, err := url.Parse(name)
	if err != nil || p.Host == "" || strings.ContainsAny(name, "\r\n") {
		return 0, fmt.Errorf("%.100q is no absolute URL", name)
	}
	if len(u.names) > maxPage {
		return 0, errors.New("more than 4294967295 URLs")
	}
	name = strings.Clone(name)
	n := uint32(len(u.names))
	u.number[name] = n
	u.names = append(u.names, name)
	return n, nil
}

// Numbered is what URLs become: pages in the order of their hosts, with the
// labels of the names from the right on, and paths.
type Numbered struct {
	Names []string // URL of each page
	Sites []uint32 // first page of each host
	Links [][2]uint32
}

// Number numbers the pages. The set is empty afterwards.
func (u *URLs) Number() Numbered {
	keys := make([]string, len(u.names))
	order := make([]uint32, len(u.names))
	for i, name := range u.names {
		order[i] = uint32(i)
		keys[i] = siteKey(name)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		if c := strings.Compare(keys[a], keys[b]); c != 0 {
			return c
		}
		return strings.Compare(u.names[a], u.names[b])
	})
	n := Numbered{Names: make([]string, len(order)), Links: u.links}
	place := make([]uint32, len(order))
	for at, id := range order {
		place[id] = uint32(at)
		n.Names[at] = u.names[id]
		if at == 0 || keys[id] != keys[order[at-1]] {
			n.Sites = append(n.Sites, uint32(at))
		}
	}
	for i, l := range n.Links {
		n.Links[i] = [2]uint32{place[l[0]], place[l[1]]}
	}
	*u = *NewURLs()
	return n
}

// siteKey returns the host of a URL with its labels turned round: com.example.www
// and the port.
func siteKey(name string) string {
	p, err := url.Parse(name)
	if err != nil {
		return ""
	}
	labels := strings.Split(strings.ToLower(p.Hostname()), ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".") + ":" + p.Port()
}

// ReadLinks reads links between URLs as `freshet export links` writes them: JSON
// lines with "from" and "to", or CSV with these columns.
func ReadLinks(r io.Reader, add func(from, to string) error) error {
	in := bufio.NewReaderSize(r, 1<<16)
	head, err := in.Peek(1)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	if head[0] == '{' {
		return readJSONLinks(in, add)
	}
	return readCSVLinks(in, add)
}

func readJSONLinks(in *bufio.Reader, add func(from, to string) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for n := int64(1); lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var l struct{ From, To string }
		err := json.Unmarshal(lines.Bytes(), &l)
		if err == nil {
			err = add(l.From, l.To)
		}
		if err != nil {
			return &LineError{n, err.Error()}
		}
	}
	return lines.Err()
}

func readCSVLinks(in *bufio.Reader, add func(from, to string) error) error {
	rows := csv.NewReader(in)
	rows.ReuseRecord = true
	head, err := rows.Read()
	if err != nil {
		return err
	}
	from, to := slices.Index(head, "from"), slices.Index(head, "to")
	if from < 0 || to < 0 {
		return &LineError{1, "no columns from and to: want what `freshet export links --format csv` writes"}
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil { // it tells the line
			return err
		}
		if err := add(row[from], row[to]); err != nil {
			line, _ := rows.FieldPos(0)
			return &LineError{int64(line), err.Error()}
		}
	}
}
