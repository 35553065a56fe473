package media

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Title is what a file is a copy of: a song, an episode, a film, or itself.
type Title struct {
	Key     string // equal for all copies; not for people
	Display string // "Madonna - Music", "Lost S02E05", "Solaris (1972)"
	Show    string // series of an episode
	Season  int
	Episode int
	Year    int
}

// TitleOf tells what the file of this name is a copy of: by its tags, else by its
// name without what releases put into it (separators, track numbers, resolution,
// codecs, group names). size tells apart files that are neither songs nor films.
func TitleOf(name string, size int64, in *Info) Title {
	kind := KindOf(name)
	switch kind {
	case Audio:
		return audioTitle(name, in)
	case Video:
		return videoTitle(name, in)
	}
	t := Title{Key: "f\x00" + strings.ToLower(norm.NFC.String(name)) + "\x00" + strconv.FormatInt(size, 36), Display: name, Year: in.Year}
	if in.Title != "" && kind == Document {
		t.Display = in.Title
	}
	return t
}

func audioTitle(name string, in *Info) Title {
	artist, title := in.Artist, in.Title
	if title == "" {
		clean := cleanName(name)
		clean = leadingTrack.ReplaceAllString(clean, "")
		if a, t, ok := strings.Cut(clean, " - "); ok && artist == "" {
			artist, title = a, leadingTrack.ReplaceAllString(t, "")
		} else {
			title = clean
		}
	}
	display := strings.TrimSpace(title)
	if artist != "" {
		display = strings.TrimSpace(artist) + " - " + display
	}
	return Title{Key: "a\x00" + foldLetters(artist) + "\x00" + foldLetters(title), Display: display, Year: in.Year}
}

var (
	leadingTrack = regexp.MustCompile(`^\s*\d{1,3}\s*[.)\-_ ]\s*[-. ]*`)
	episode      = regexp.MustCompile(`(?i)\bs(\d{1,2})\s*[ex]\s*(\d{1,3})\b|\b(\d{1,2})x(\d{2,3})\b|\bseason\s*(\d{1,2}).{0,3}episode\s*(\d{1,3})\b|(?:^|\s)сезон\s*(\d{1,2}).{0,3}серия\s*(\d{1,3})`)
	yearIn       = regexp.MustCompile(`(?:^|[\s(\[])((?:19|20)\d\d)(?:[\s)\]]|$)`)
	noise        = regexp.MustCompile(`(?i)\b(2160p|1080[pi]|720p|576p|480p|4k|uhd|hdr10?|x26[45]|h\.?26[45]|hevc|avc|xvid|divx|blu-?ray|bdrip|brrip|bdremux|remux|dvdrip|dvd ?scr|dvd[59]?|hdtv(rip)?|hdrip|web-?dl(rip)?|webrip|satrip|tvrip|camrip|telesync|proper|repack|unrated|extended|directors cut|aac|ac3|dts(-?hd)?|5\.1|mp3|dual ?audio|multi|rus|eng|lt|subs?|limited|internal|amzn|nf|10bit)\b`)
	bracketed    = regexp.MustCompile(`\[[^\]]*\]|\{[^}]*\}`)
	spaces       = regexp.MustCompile(`\s+`)
)

func videoTitle(name string, in *Info) Title {
	t := Title{Show: in.Show, Season: in.Season, Episode: in.Episode, Year: in.Year}
	clean := cleanName(name)
	film := clean
	if m := episode.FindStringSubmatchIndex(clean); m != nil && t.Episode == 0 {
		for g := 2; g+3 < len(m); g += 4 {
			if m[g] >= 0 {
				t.Season, _ = strconv.Atoi(clean[m[g]:m[g+1]])
				t.Episode, _ = strconv.Atoi(clean[m[g+2]:m[g+3]])
			}
		}
		if t.Show == "" {
			t.Show = strings.Trim(clean[:m[0]], " -")
		}
	}
	if t.Episode > 0 && t.Show == "" && in.Title != "" {
		t.Show = in.Title
	}
	if t.Episode > 0 && t.Show != "" {
		t.Key = "e\x00" + foldLetters(t.Show) + "\x00" + strconv.Itoa(t.Season) + "\x00" + strconv.Itoa(t.Episode)
		t.Display = t.Show + " S" + twoDigits(t.Season) + "E" + twoDigits(t.Episode)
		return t
	}
	if m := yearIn.FindStringSubmatchIndex(film); m != nil && m[0] > 0 {
		if y, err := strconv.Atoi(film[m[2]:m[3]]); err == nil && t.Year == 0 {
			t.Year = y
		}
		film = film[:m[0]]
	}
	if m := noise.FindStringIndex(film); m != nil && m[0] > 0 {
		film = film[:m[0]]
	}
	film = strings.Trim(film, " -([")
	if in.Title != "" && !strings.EqualFold(in.Title, strings.TrimSuffix(name, "."+Ext(name))) && in.Rating+float64(in.Year) > 0 {
		film = in.Title // from a side file, which knows better than a release's name
	}
	t.Key = "v\x00" + foldLetters(film) + "\x00" + strconv.Itoa(t.Year)
	t.Display = film
	if t.Year > 0 {
		t.Display += " (" + strconv.Itoa(t.Year) + ")"
	}
	return t
}

func twoDigits(n int) string {
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// cleanName returns a name without its extension, with spaces for the dots and
// underscores that stand for them, without what is in brackets.
func cleanName(name string) string {
	if e := Ext(name); e != "" {
		name = name[:len(name)-len(e)-1]
	}
	whole := name
	name = bracketed.ReplaceAllString(name, " ")
	if strings.TrimSpace(name) == "" {
		name = whole
	}
	if !strings.Contains(name, " ") || strings.Count(name, ".") > strings.Count(name, " ") {
		name = strings.ReplaceAll(name, ".", " ")
	}
	name = strings.ReplaceAll(name, "_", " ")
	return strings.TrimSpace(spaces.ReplaceAllString(norm.NFC.String(name), " "))
}

// foldLetters keeps letters and digits, in lower case, without accents on Latin letters.
func foldLetters(s string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(strings.ToLower(s)) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}
