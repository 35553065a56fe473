package query

import (
	"math"
	"strconv"
	"strings"
	"time"
)

type parser struct {
	lex   []token
	pos   int
	depth int
	now   time.Time
}

// maxDepth bounds the nesting of parentheses; deeper ones are ignored.
const maxDepth = 100

func (p *parser) atEnd() bool      { return p.pos >= len(p.lex) }
func (p *parser) peekToken() token { return p.lex[p.pos] }
func (p *parser) takeToken() token { p.pos++; return p.lex[p.pos-1] }

// parseAlternatives reads alternatives: and {OR and}.
func (p *parser) parseAlternatives() Node {
	alt := Or{p.parseConjunction()}
	for !p.atEnd() && p.peekToken().kind == either {
		p.takeToken()
		alt = append(alt, p.parseConjunction())
	}
	if len(alt) == 1 {
		return alt[0]
	}
	return alt
}

// parseConjunction reads nodes up to an OR, a closing parenthesis or the end.
func (p *parser) parseConjunction() Node {
	var all And
	for !p.atEnd() {
		switch t := p.peekToken(); t.kind {
		case either, closing:
			return all
		case opening:
			p.takeToken()
			all = append(all, negateIf(t.not, p.parseGroup()))
		default:
			p.takeToken()
			if n := p.parseLeaf(t); n != nil {
				all = append(all, negateIf(t.not, n))
			}
		}
	}
	return all
}

func (p *parser) parseGroup() Node {
	if p.depth >= maxDepth {
		return And(nil)
	}
	p.depth++
	n := p.parseAlternatives()
	p.depth--
	if !p.atEnd() && p.peekToken().kind == closing {
		p.takeToken()
	}
	return n
}

func negateIf(not bool, n Node) Node {
	if not {
		return Not{n}
	}
	return n
}

// parseLeaf makes a node of a word token.
func (p *parser) parseLeaf(t token) Node {
	if f := keywordFields[t.field]; f != "" {
		return Filter{f, strings.ToLower(t.text)}
	}
	if f := rangeFields[t.field]; f != "" {
		if r, ok := parseRange(f, t.text, p.now); ok {
			return r
		}
		t.field, t.text = "", t.field+":"+t.text
	}
	field := textFields[t.field]
	if t.quoted && !t.prefix && strings.Contains(t.text, " ") {
		return Phrase{field, t.text}
	}
	return Term{field, t.text, t.prefix}
}

// parseRange reads a..b, a.., ..b, >a, >=a, <a, <=a, or a alone: that year,
// that day or month, exactly that many bytes.
func parseRange(field, s string, now time.Time) (Range, bool) {
	r := Range{field, math.Inf(-1), math.Inf(1)}
	var ok bool
	low, high, dots := strings.Cut(s, "..")
	switch {
	case dots:
		if low != "" {
			if r.Min, _, ok = parseRangeEnd(field, low, now); !ok {
				return r, false
			}
		}
		if high != "" {
			if _, r.Max, ok = parseRangeEnd(field, high, now); !ok {
				return r, false
			}
		}
		return r, low != "" || high != ""
	case strings.HasPrefix(s, ">"):
		r.Min, _, ok = parseRangeEnd(field, strings.TrimPrefix(s[1:], "="), now)
	case strings.HasPrefix(s, "<"):
		_, r.Max, ok = parseRangeEnd(field, strings.TrimPrefix(s[1:], "="), now)
	default:
		r.Min, r.Max, ok = parseRangeEnd(field, s, now)
	}
	return r, ok
}

// parseRangeEnd reads one end of a range and returns the span that it names: a day
// has a first and a last second, a number is a point.
func parseRangeEnd(field, s string, now time.Time) (low, high float64, ok bool) {
	switch field {
	case "date":
		return parseDateSpan(s, now)
	case "size":
		v, ok := parseUnitNumber(s, map[string]float64{"b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30, "t": 1 << 40, "tb": 1 << 40})
		return v, v, ok
	case "duration":
		v, ok := parseUnitNumber(s, map[string]float64{"s": 1, "m": 60, "min": 60, "h": 3600})
		return v, v, ok
	}
	v, ok := parseUnitNumber(s, nil)
	return v, v, ok
}

// parseUnitNumber reads a number that is not negative, with a unit.
func parseUnitNumber(s string, units map[string]float64) (float64, bool) {
	s = strings.ToLower(s)
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz")
	scale := 1.0
	if unit := s[len(digits):]; unit != "" {
		var ok bool
		if scale, ok = units[unit]; !ok {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, false
	}
	return v * scale, true
}

// parseDateSpan reads 2024, 2024-05, 2024-05-03, a full RFC 3339 time, or an age: 12h,
// 7d, 2w, 6mo, 1y before now.
func parseDateSpan(s string, now time.Time) (low, high float64, ok bool) {
	layouts := []struct {
		form                string
		years, months, days int
	}{{"2006", 1, 0, 0}, {"2006-01", 0, 1, 0}, {"2006-01-02", 0, 0, 1}}
	for _, l := range layouts {
		if t, err := time.Parse(l.form, s); err == nil {
			return float64(t.Unix()), float64(t.AddDate(l.years, l.months, l.days).Unix() - 1), true
		}
	}
	if t, err := time.Parse(time.RFC3339, strings.ToUpper(s)); err == nil {
		return float64(t.Unix()), float64(t.Unix()), true
	}
	age, ok := parseUnitNumber(s, map[string]float64{"h": 3600, "d": 86400, "w": 7 * 86400, "mo": 30 * 86400, "y": 365 * 86400})
	if !ok || strings.TrimRight(s, "0123456789.") != s { // an age has a unit
		return 0, 0, false
	}
	return float64(now.Unix()) - math.Floor(age), math.Inf(1), true
}
