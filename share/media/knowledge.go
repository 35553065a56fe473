package media

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Knowledge tells of titles what their files do not: genre, actors, rating. The
// zero value knows nothing.
type Knowledge struct {
	byTitle map[string]Info // by folded title, a zero byte, year or ""
}

// LoadKnowledge reads a CSV file with a header of title and any of year, genre,
// actors (separated by ;), rating, artist, album; or a JSON array of objects with
// these names, actors as an array.
func LoadKnowledge(path string) (*Knowledge, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("knowledge: %w", err)
	}
	defer f.Close()
	k, err := ParseKnowledge(f, strings.EqualFold(Ext(path), "json"))
	if err != nil {
		return nil, fmt.Errorf("knowledge %s: %w", path, err)
	}
	return k, nil
}

// ParseKnowledge reads what LoadKnowledge does. Errors name the line.
func ParseKnowledge(r io.Reader, isJSON bool) (*Knowledge, error) {
	k := &Knowledge{byTitle: map[string]Info{}}
	if isJSON {
		var list []struct {
			Title, Genre, Artist, Album string
			Year                        int
			Rating                      float64
			Actors                      []string
		}
		d := json.NewDecoder(r)
		d.DisallowUnknownFields()
		if err := d.Decode(&list); err != nil {
			return nil, err
		}
		for _, e := range list {
			k.addTitle(Info{Title: e.Title, Genre: e.Genre, Artist: e.Artist, Album: e.Album, Year: e.Year, Rating: e.Rating, Actors: e.Actors})
		}
		return k, nil
	}
	c := csv.NewReader(r)
	header, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	for i, h := range header {
		header[i] = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(h, "\ufeff")))
	}
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return k, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := c.FieldPos(0)
		var in Info
		for i, v := range row {
			if err := in.setColumn(header[i], strings.TrimSpace(v)); err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
		}
		k.addTitle(in)
	}
}

func (in *Info) setColumn(name, v string) (err error) {
	switch name {
	case "title":
		in.Title = v
	case "genre":
		in.Genre = v
	case "artist":
		in.Artist = v
	case "album":
		in.Album = v
	case "actors":
		for a := range strings.SplitSeq(v, ";") {
			if a = strings.TrimSpace(a); a != "" {
				in.Actors = append(in.Actors, a)
			}
		}
	case "year":
		if v != "" {
			in.Year, err = strconv.Atoi(v)
		}
	case "rating":
		if v != "" {
			in.Rating, err = strconv.ParseFloat(v, 64)
		}
	default:
		return fmt.Errorf("unknown column %q: use title, year, genre, actors, rating, artist, album", name)
	}
	if err != nil {
		return fmt.Errorf("%s: %q is no number", name, v)
	}
	return nil
}

func (k *Knowledge) addTitle(in Info) {
	in.cleanTexts()
	if in.Title == "" {
		return
	}
	k.byTitle[foldLetters(in.Title)+"\x00"] = in
	if in.Year > 0 {
		k.byTitle[foldLetters(in.Title)+"\x00"+strconv.Itoa(in.Year)] = in
	}
}

// Tell adds to in what is known of the file of this name; what the file says of
// itself stays.
func (k *Knowledge) Tell(name string, in *Info) {
	if k == nil || len(k.byTitle) == 0 {
		return
	}
	t := TitleOf(name, 0, in)
	title := t.Show
	if title == "" {
		parts := strings.Split(t.Key, "\x00")
		if parts[0] != "v" && parts[0] != "a" {
			return
		}
		title = parts[1]
		if parts[0] == "a" {
			title = parts[2]
		}
	}
	known, ok := k.byTitle[foldLetters(title)+"\x00"+strconv.Itoa(t.Year)]
	if !ok {
		if known, ok = k.byTitle[foldLetters(title)+"\x00"]; !ok || (t.Year > 0 && known.Year > 0 && t.Year != known.Year && t.Show == "") {
			return
		}
	}
	in.Learn(known)
}

// Learn fills what is unknown in in from other.
func (in *Info) Learn(other Info) {
	for _, p := range [][2]*string{{&in.Title, &other.Title}, {&in.Artist, &other.Artist}, {&in.Album, &other.Album}, {&in.Genre, &other.Genre}, {&in.Show, &other.Show}} {
		if *p[0] == "" {
			*p[0] = *p[1]
		}
	}
	for _, p := range [][2]*int{{&in.Year, &other.Year}, {&in.Season, &other.Season}, {&in.Episode, &other.Episode}} {
		if *p[0] == 0 {
			*p[0] = *p[1]
		}
	}
	if in.Rating == 0 {
		in.Rating = other.Rating
	}
	if len(in.Actors) == 0 {
		in.Actors = other.Actors
	}
}

// MaxNFO is what is read of a side file.
const MaxNFO = 64 << 10

// ParseNFO reads an .nfo side file as media centres write them: XML with movie,
// episodedetails or tvshow. Others, such as release notes, are an error.
func ParseNFO(b []byte) (Info, error) {
	var n struct {
		XMLName xml.Name
		Title   string   `xml:"title"`
		Show    string   `xml:"showtitle"`
		Year    string   `xml:"year"`
		Date    string   `xml:"premiered"`
		Genre   []string `xml:"genre"`
		Rating  string   `xml:"rating"`
		Ratings []string `xml:"ratings>rating>value"`
		Season  string   `xml:"season"`
		Episode string   `xml:"episode"`
		Actors  []struct {
			Name string `xml:"name"`
		} `xml:"actor"`
	}
	d := xml.NewDecoder(bytes.NewReader(b[:min(len(b), MaxNFO)]))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) {
		raw, err := io.ReadAll(r)
		return strings.NewReader(decodeLegacy(raw)), err
	}
	if err := d.Decode(&n); err != nil {
		return Info{}, fmt.Errorf("no side file of a media centre: %w", err)
	}
	switch n.XMLName.Local {
	case "movie", "episodedetails", "tvshow", "musicvideo":
	default:
		return Info{}, fmt.Errorf("no side file of a media centre: it begins with <%s>", n.XMLName.Local)
	}
	in := Info{
		Title: n.Title, Show: n.Show, Year: leadingInt(n.Year), Genre: strings.Join(n.Genre, ", "),
		Season: leadingInt(n.Season), Episode: leadingInt(n.Episode),
	}
	if in.Year == 0 {
		in.Year = leadingInt(n.Date)
	}
	for _, r := range append(n.Ratings, n.Rating) {
		if v, err := strconv.ParseFloat(strings.TrimSpace(r), 64); err == nil && v > 0 && v <= 100 {
			in.Rating = v
			break
		}
	}
	for _, a := range n.Actors[:min(len(n.Actors), 20)] {
		in.Actors = append(in.Actors, a.Name)
	}
	in.cleanTexts()
	return in, nil
}
