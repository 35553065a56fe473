package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/freshet/freshet/internal/spell"
	"github.com/freshet/freshet/weburl"
)

// Load reads the file at path (none if empty) over the defaults, then the
// FRESHET_ variables of environ ("KEY=value"), then sets ("crawl.agents=8"),
// and checks the result. The error has a line for each thing that is wrong.
//
// Errors do not show passwords of URLs.
func Load(path string, environ, sets []string) (*Config, error) {
	c, err := loadFile(path, environ, sets)
	if err != nil {
		return nil, redactedError{err}
	}
	return c, nil
}

// redactedError is an error without the passwords of URLs in its text.
type redactedError struct{ err error }

// Error implements error.
func (e redactedError) Error() string { return weburl.Redact(e.err.Error()) }

// Unwrap returns the error itself.
func (e redactedError) Unwrap() error { return e.err }

// CheckMode returns an error if others on the machine may read a configuration file
// that holds secrets. A path of "" is no file.
func CheckMode(path string, c *Config) error {
	if path == "" || !c.hasSecrets() {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o004 == 0 {
		return nil
	}
	return fmt.Errorf("%s holds secrets and every user of this machine can read it: chmod 600 %s", path, path)
}

// hasSecrets reports whether the configuration has a password or token.
func (c *Config) hasSecrets() bool {
	urls := []string{c.Database, c.Crawl.Proxy}
	found := c.Console.Password != "" || len(c.Console.Tokens) > 0 || len(c.Signals.Secrets) > 0
	for _, s := range c.Sources {
		found = found || s.Password != "" || len(s.Headers) > 0
		urls = append(urls, s.URL)
	}
	return found || slices.ContainsFunc(urls, func(u string) bool { return weburl.Redact(u) != u })
}

func loadFile(path string, environ, sets []string) (*Config, error) {
	c := Default()
	if path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
		if err := c.decodeYAML(path, b); err != nil {
			return nil, err
		}
	}
	var errs []error
	for _, kv := range environ {
		errs = append(errs, c.setEnv(kv))
	}
	for _, kv := range sets {
		key, value, ok := strings.Cut(kv, "=")
		if !ok {
			errs = append(errs, fmt.Errorf("--set %s: want key=value", kv))
			continue
		}
		if err := c.setKey(strings.Split(key, "."), value); err != nil {
			errs = append(errs, fmt.Errorf("--set %s: %w", key, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil {
		if path != "" {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return nil, err
	}
	return c, nil
}

// decodeYAML decodes one YAML document, reporting every unknown key and wrong value.
func (c *Config) decodeYAML(path string, b []byte) error {
	var root yaml.Node
	if err := yaml.Unmarshal(b, &root); err != nil {
		return fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if root.Kind == 0 { // an empty file
		return nil
	}
	var errs []error
	collectUnknownKeys(path, &root, reflect.TypeOf(*c), &errs)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := root.Decode(c); err != nil {
		var te *yaml.TypeError
		if errors.As(err, &te) {
			for _, s := range te.Errors {
				errs = append(errs, fmt.Errorf("%s:%s", path, wrongValue(&root, s)))
			}
			return errors.Join(errs...)
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// mismatch is the YAML package's remark on a value of a wrong kind.
var mismatch = regexp.MustCompile("^line ([0-9]+): cannot unmarshal !![a-z]+ `?(.*?)`? into (.+)$")

// wrongValue says what is wrong on a line of the document: its key, the value,
// and what would be right.
func wrongValue(root *yaml.Node, remark string) string {
	m := mismatch.FindStringSubmatch(remark)
	if m == nil {
		return strings.TrimPrefix(remark, "line ")
	}
	line, err := strconv.Atoi(m[1])
	if err != nil {
		return remark
	}
	kind := m[3]
	switch {
	case strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "uint"):
		kind = "whole number"
	case strings.HasPrefix(kind, "float"):
		kind = "number"
	case kind == "bool":
		kind = "true or false"
	case kind == "time.Duration":
		kind = describeType(reflect.TypeFor[time.Duration]())
	case strings.HasPrefix(kind, "[]"):
		kind = "list"
	case strings.HasPrefix(kind, "config."):
		kind = "mapping of keys"
	}
	return fmt.Sprintf("%d: %s%q is no %s", line, keyAt(root, line), m[2], kind)
}

// keyAt returns the key whose value begins on a line, with a colon, or "".
func keyAt(n *yaml.Node, line int) string {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if k, v := n.Content[i], n.Content[i+1]; v.Line == line && v.Kind != yaml.MappingNode {
				return k.Value + ": "
			}
		}
	}
	for _, c := range n.Content {
		if k := keyAt(c, line); k != "" {
			return k
		}
	}
	return ""
}

// collectUnknownKeys walks the document beside the type and collects keys that the type
// does not have.
func collectUnknownKeys(path string, n *yaml.Node, t reflect.Type, errs *[]error) {
	switch {
	case n.Kind == yaml.DocumentNode:
		collectUnknownKeys(path, n.Content[0], t, errs)
	case n.Kind == yaml.AliasNode:
		return // the anchor was checked where it stands
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for _, c := range n.Content {
			collectUnknownKeys(path, c, t.Elem(), errs)
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		keys := keysByName(t)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if f, ok := keys[k.Value]; ok {
				collectUnknownKeys(path, n.Content[i+1], f.Type, errs)
				continue
			}
			*errs = append(*errs, fmt.Errorf("%s:%d: unknown key %q%s", path, k.Line, k.Value, spell.Suggest(k.Value, keyNames(keys))))
		}
	}
}

func keysByName(t reflect.Type) map[string]reflect.StructField {
	out := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		out[f.Tag.Get("yaml")] = f
	}
	return out
}

// keyNames lists the keys of a struct.
func keyNames(keys map[string]reflect.StructField) []string { return slices.Collect(maps.Keys(keys)) }

// setEnv applies FRESHET_SECTION_KEY=value where such a key exists; other
// variables are not ours.
func (c *Config) setEnv(kv string) error {
	name, value, _ := strings.Cut(kv, "=")
	rest, ok := strings.CutPrefix(name, "FRESHET_")
	if !ok || rest == "DATA" { // --data reads it
		return nil
	}
	path := pathOf(reflect.TypeOf(*c), strings.ToLower(rest))
	if path == nil {
		return nil
	}
	if err := c.setKey(path, value); err != nil {
		return fmt.Errorf("$%s: %w", name, err)
	}
	return nil
}

// pathOf finds the keys whose names joined by _ are name.
func pathOf(t reflect.Type, name string) []string {
	for key, f := range keysByName(t) {
		if key == name && f.Type.Kind() != reflect.Struct {
			return []string{key}
		}
		if rest, ok := strings.CutPrefix(name, key+"_"); ok && f.Type.Kind() == reflect.Struct {
			if p := pathOf(f.Type, rest); p != nil {
				return append([]string{key}, p...)
			}
		}
	}
	return nil
}

// setKey gives the key at path a value written as in the file.
func (c *Config) setKey(path []string, value string) error {
	v := reflect.ValueOf(c).Elem()
	for _, p := range path {
		if v.Kind() != reflect.Struct {
			return fmt.Errorf("%s has no keys inside", p)
		}
		f, ok := keysByName(v.Type())[p]
		if !ok {
			return fmt.Errorf("unknown key %q%s", p, spell.Suggest(p, keyNames(keysByName(v.Type()))))
		}
		v = v.FieldByIndex(f.Index)
	}
	if v.Kind() == reflect.Slice && !strings.HasPrefix(strings.TrimSpace(value), "[") {
		value = "[" + value + "]"
	}
	if v.Kind() == reflect.String {
		v.SetString(value)
		return nil
	}
	if err := yaml.Unmarshal([]byte(value), v.Addr().Interface()); err != nil {
		if slices.Contains(secret, path[len(path)-1]) {
			return fmt.Errorf("the value is no %s", describeType(v.Type()))
		}
		return fmt.Errorf("%q is no %s", value, describeType(v.Type()))
	}
	return nil
}

func describeType(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration](), t == reflect.TypeFor[*time.Duration]():
		return "duration (10s, 5m, 24h)"
	case t == reflect.TypeFor[Bytes]():
		return "size (16MB, 1GB)"
	}
	return t.String()
}

// Bytes is a number of bytes, written with or without a binary unit: 16MB.
type Bytes int64

var units = []struct {
	name string
	size int64
}{{"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}}

// ParseBytes reads a size such as 1048576, 512KB or 1.5GB.
func ParseBytes(s string) (Bytes, error) {
	text := strings.ToUpper(strings.TrimSpace(s))
	scale := int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			text, scale = strings.TrimSpace(rest), u.size
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || v*float64(scale) > 1<<62 {
		return 0, fmt.Errorf("%q is no size (16MB, 1GB)", s)
	}
	return Bytes(v * float64(scale)), nil
}

// UnmarshalYAML reads a number or a size with a unit.
func (b *Bytes) UnmarshalYAML(n *yaml.Node) error {
	v, err := ParseBytes(n.Value)
	if err != nil {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %v", n.Line, err)}}
	}
	*b = v
	return nil
}

// String writes the size with the greatest unit that divides it.
func (b Bytes) String() string {
	for _, u := range units {
		if int64(b) >= u.size && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return "0"
}
