package config

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/freshet/freshet/weburl"
)

// Print writes the configuration as a commented YAML file that Load reads back.
// Secrets are left out, and so are the passwords of URLs.
func (c *Config) Print(w io.Writer) error {
	bw := bufio.NewWriter(w)
	fmt.Fprintln(bw, "# Configuration of freshet serve. Every key stands here with its value; leave out what you do not change.")
	printStruct(bw, reflect.ValueOf(*c), "")
	return bw.Flush()
}

var secret = []string{"password", "tokens", "secrets", "headers"}

func printStruct(w io.Writer, v reflect.Value, indent string) {
	for _, f := range reflect.VisibleFields(v.Type()) {
		key := f.Tag.Get("yaml")
		fmt.Fprintf(w, "%s# %s\n", indent, f.Tag.Get("doc"))
		fv := v.FieldByIndex(f.Index)
		switch {
		case slices.Contains(secret, key):
			fmt.Fprintf(w, "%s# %s: (not printed)\n", indent, key)
		case f.Type.Kind() == reflect.Struct:
			fmt.Fprintf(w, "%s%s:\n", indent, key)
			printStruct(w, fv, indent+"  ")
		case f.Type == reflect.TypeFor[[]Source]():
			printSources(w, fv.Interface().([]Source), key)
		default:
			fmt.Fprintln(w, strings.TrimRight(indent+key+": "+formatScalar(fv), " "))
		}
	}
}

// printSources writes the list, or, when it is empty, an example as a comment.
func printSources(w io.Writer, sources []Source, key string) {
	prefix := ""
	if len(sources) == 0 {
		fmt.Fprintf(w, "%s: []\n", key)
		sources, prefix = []Source{{URL: "https://www.example.org/", Scope: "host"}}, "# "
	} else {
		fmt.Fprintf(w, "%s:\n", key)
	}
	for _, s := range sources {
		var b strings.Builder
		printStruct(&b, reflect.ValueOf(s), "    ")
		text := strings.TrimSuffix(b.String(), "\n")
		fmt.Fprintf(w, "%s  -\n", prefix)
		for line := range strings.Lines(text) {
			fmt.Fprintf(w, "%s%s", prefix, line)
		}
		fmt.Fprintln(w)
	}
}

func formatScalar(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return shortDuration(x)
	case *time.Duration:
		if x == nil {
			return "" // not given
		}
		return shortDuration(*x)
	case Bytes:
		return x.String()
	case string:
		v = reflect.ValueOf(weburl.Redact(x))
	case []string:
		shown := make([]string, len(x))
		for i, s := range x {
			shown[i] = weburl.Redact(s)
		}
		v = reflect.ValueOf(shown)
	}
	var n yaml.Node
	if err := n.Encode(v.Interface()); err != nil {
		return `""`
	}
	n.Style |= yaml.FlowStyle
	for _, c := range n.Content {
		c.Style |= yaml.FlowStyle
	}
	b, err := yaml.Marshal(&n)
	if err != nil {
		return `""`
	}
	return strings.TrimSpace(string(b))
}

// shortDuration drops the zero minutes and seconds that time.Duration prints.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
