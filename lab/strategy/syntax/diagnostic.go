package syntax

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Diagnostic is one message about a script.
type Diagnostic struct {
	Pos     Pos
	End     int // column after the last character it is about; at least Pos.Col+1
	Warning bool
	Message string
}

// maxErrors is how many errors are told of one script: what follows is mostly
// a consequence of them.
const maxErrors = 50

// Diagnostics collects messages. The zero value is ready to use.
type Diagnostics struct {
	List   []Diagnostic
	errors int
}

// Errorf adds an error.
func (d *Diagnostics) Errorf(at Pos, end int, format string, args ...any) {
	d.errors++
	if d.errors <= maxErrors {
		d.List = append(d.List, Diagnostic{Pos: at, End: max(end, at.Col+1), Message: fmt.Sprintf(format, args...)})
	}
}

// Warnf adds a warning.
func (d *Diagnostics) Warnf(at Pos, end int, format string, args ...any) {
	d.List = append(d.List, Diagnostic{Pos: at, End: max(end, at.Col+1), Warning: true, Message: fmt.Sprintf(format, args...)})
}

// Errors returns how many errors there are, those beyond the list included.
func (d *Diagnostics) Errors() int { return d.errors }

// Sort orders the messages by place.
func (d *Diagnostics) Sort() {
	slices.SortStableFunc(d.List, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
}

// GCC writes the message as compilers do, for editors: file:line:column:
// error: message.
func (d Diagnostic) GCC(file string) string {
	severity := "error"
	if d.Warning {
		severity = "warning"
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", file, d.Pos.Line, d.Pos.Col, severity, d.Message)
}

// Human writes the message with the source line and a caret under the place:
// file:line:column: message.
func (d Diagnostic) Human(file, src string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", file, d.Pos.Line, d.Pos.Col)
	if d.Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(d.Message)
	line := SourceLine(src, d.Pos.Line)
	if strings.TrimSpace(line) == "" {
		return b.String()
	}
	b.WriteString("\n    ")
	b.WriteString(line)
	b.WriteString("\n    ")
	col := 1
	for _, r := range line { // tabs stay tabs, so that the caret stands where it should
		if col >= d.Pos.Col {
			break
		}
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
		col++
	}
	b.WriteByte('^')
	if n := min(d.End-d.Pos.Col, 60) - 1; n > 0 {
		b.WriteString(strings.Repeat("~", n))
	}
	return b.String()
}

// SourceLine returns the line of a script, counted from 1, without its end.
func SourceLine(src string, line int) string {
	for ; line > 1; line-- {
		_, rest, ok := strings.Cut(src, "\n")
		if !ok {
			return ""
		}
		src = rest
	}
	l, _, _ := strings.Cut(src, "\n")
	return strings.ToValidUTF8(strings.TrimSuffix(l, "\r"), "\uFFFD")
}
