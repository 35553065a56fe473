package behaviour

import (
	"embed"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/freshet/freshet/internal/spell"
)

// Active is a behaviour of a configuration with its name.
type Active struct {
	Name string
	Behaviour
}

// Set is the behaviours of a configuration, in the order of the table.
type Set []Active

// presets holds a configuration for each preset.
//
//go:embed presets/*.yaml
var presets embed.FS

// Presets returns the names of the presets.
func Presets() []string {
	entries, err := presets.ReadDir("presets")
	if err != nil {
		panic("behaviour: embedded files: " + err.Error()) // they are part of the program
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".yaml")
	}
	return names
}

// Preset returns the behaviours of a preset.
func Preset(preset string) (Set, error) {
	return Parse("", []byte("preset: "+preset))
}

// Parse reads a configuration: a YAML mapping from names of behaviours to their
// options, `on` for the defaults or `off`; the key preset takes over those of a
// preset, which other keys then change. path is for the errors, which
// name the line of every unknown key and the nearest known one.
func Parse(path string, b []byte) (Set, error) {
	options := map[string]module{}
	if err := readConfiguration(path, b, options, 0); err != nil {
		return nil, err
	}
	var set Set
	for _, k := range Kinds() {
		if m := options[k.Name]; m != nil {
			m.setSalt(fnv1a(k.Name))
			set = append(set, Active{k.Name, m})
		}
	}
	return set, nil
}

const presetKey = "preset"

// readConfiguration adds a configuration to options.
func readConfiguration(path string, b []byte, options map[string]module, level int) error {
	var root yaml.Node
	if err := yaml.Unmarshal(b, &root); err != nil {
		return fmt.Errorf("%s%s", errorPlace(path, 0), strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if root.Kind == 0 { // an empty file
		return nil
	}
	top := root.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil
	}
	if top.Kind != yaml.MappingNode {
		return fmt.Errorf("%swant a mapping from behaviours to options, like `latency: {median: 50ms}`", errorPlace(path, top.Line))
	}
	var errs []error
	for i := 0; i+1 < len(top.Content); i += 2 { // the preset goes first, wherever it stands
		if key, value := top.Content[i], top.Content[i+1]; key.Value == presetKey {
			errs = append(errs, readPreset(path, value, options, level))
		}
	}
	kinds := Kinds()
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		k := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == key.Value })
		switch {
		case key.Value == presetKey:
		case k < 0:
			names := []string{presetKey}
			for _, k := range kinds {
				names = append(names, k.Name)
			}
			errs = append(errs, fmt.Errorf("%sunknown behaviour %q%s", errorPlace(path, key.Line), key.Value, spell.Suggest(key.Value, names)))
		default:
			errs = append(errs, readOptions(path, kinds[k], value, options))
		}
	}
	return errors.Join(errs...)
}

func readPreset(path string, value *yaml.Node, options map[string]module, level int) error {
	b, err := presets.ReadFile("presets/" + value.Value + ".yaml")
	if err != nil || value.Kind != yaml.ScalarNode {
		return fmt.Errorf("%sunknown preset %q%s", errorPlace(path, value.Line), value.Value, spell.Suggest(value.Value, Presets()))
	}
	if level > 0 {
		return fmt.Errorf("%sa preset of a preset", errorPlace(path, value.Line))
	}
	return readConfiguration("preset "+value.Value, b, options, level+1)
}

// readOptions reads the options of one behaviour over those it has so far.
func readOptions(path string, k Kind, value *yaml.Node, options map[string]module) error {
	if value.Kind == yaml.ScalarNode {
		switch strings.ToLower(value.Value) {
		case "off", "false":
			delete(options, k.Name)
			return nil
		case "on", "true":
			if options[k.Name] == nil {
				options[k.Name] = k.make()
			}
			return nil
		}
	}
	if value.Kind != yaml.MappingNode {
		return fmt.Errorf("%s%s: want options like {hosts: 0.1}, on, or off", errorPlace(path, value.Line), k.Name)
	}
	m := options[k.Name]
	if m == nil {
		m = k.make()
		options[k.Name] = m
	}
	known := yamlKeys(reflect.TypeOf(m).Elem())
	var errs []error
	for i := 0; i+1 < len(value.Content); i += 2 {
		if key := value.Content[i]; !slices.Contains(known, key.Value) {
			errs = append(errs, fmt.Errorf("%sunknown key %q of %s%s", errorPlace(path, key.Line), key.Value, k.Name, spell.Suggest(key.Value, known)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := value.Decode(m); err != nil {
		return fmt.Errorf("%s%s: %s", errorPlace(path, 0), k.Name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := m.checkOptions(); err != nil {
		return fmt.Errorf("%s%s: %w", errorPlace(path, value.Line), k.Name, err)
	}
	return nil
}

// errorPlace is the place of an error.
func errorPlace(path string, line int) string {
	switch {
	case path == "" && line == 0:
		return "behaviours: "
	case path == "":
		return fmt.Sprintf("behaviours, line %d: ", line)
	case line == 0:
		return path + ": "
	}
	return fmt.Sprintf("%s:%d: ", path, line)
}

// yamlKeys returns the YAML keys of a struct.
func yamlKeys(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if tag := f.Tag.Get("yaml"); tag != "" && !strings.HasPrefix(tag, ",") {
			names = append(names, tag)
		}
	}
	return names
}

// duration is a time.Duration that reads "50ms".
type duration time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %q is no time: give a number with a unit, like 50ms or 2h", n.Line, n.Value)
	}
	*d = duration(v)
	return nil
}

// windowNumber returns the number of the window of this length that a time of the web
// is in; of length 0, there is one.
func (d duration) windowNumber(now float64) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64(now / time.Duration(d).Seconds())
}

func requirePositive(key string, v float64) error {
	if !(v > 0) || math.IsInf(v, 1) {
		return fmt.Errorf("%s: %g is not positive", key, v)
	}
	return nil
}

func notNegative(key string, v float64) error {
	if !(v >= 0) || math.IsInf(v, 1) {
		return fmt.Errorf("%s: %g is negative", key, v)
	}
	return nil
}

func requireShare(key string, v float64) error {
	if !(v >= 0 && v <= 1) {
		return fmt.Errorf("%s: %g is no share: give a number from 0 to 1", key, v)
	}
	return nil
}

func requireStatuses(list []int, least, most int) error {
	if len(list) == 0 {
		return errors.New("statuses: none given")
	}
	for _, s := range list {
		if s < least || s > most {
			return fmt.Errorf("statuses: %d is not in %d to %d", s, least, most)
		}
	}
	return nil
}

// requireKnown checks a list of names against the known ones.
func requireKnown(list, known []string) error {
	if len(list) == 0 {
		return fmt.Errorf("no variants given (known here: %s)", strings.Join(known, ", "))
	}
	for _, v := range list {
		if !slices.Contains(known, v) {
			return fmt.Errorf("unknown variant %q%s", v, spell.Suggest(v, slices.Compact(slices.Sorted(slices.Values(known)))))
		}
	}
	return nil
}
