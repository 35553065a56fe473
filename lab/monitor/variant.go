package monitor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/freshet/freshet/internal/spell"
	"github.com/freshet/freshet/lab/field"
)

// maker reads the arguments of a variant, the parts of its text after colons,
// and returns what makes its strategy for a field.
type maker struct {
	use  string // how it is written; a BUDGET is a number of downloaders, bytes a second like 50kB/s or, of visits, requests a second like 12/s
	help string
	read func(args []string) (newStrategy func(field.Field) (Strategy, error), err error)
}

// variantMakers lists the variants by name; a new one is a file and a line here.
func variantMakers() map[string]maker {
	return map[string]maker{
		"plain":       {"plain:K", "K robots fetch their shares of the resources in cycles", readRobots(false)},
		"conditional": {"conditional:K", "K robots ask first and download what changed", readRobots(true)},
		"sensor":      {"sensor", "a module in the server alerts of what visitors see changed; no limit on downloads", readSensor},

		"sensor-queue": {"sensor-queue:BUDGET[:LENGTH]", "the sensor with a queue of at most LENGTH alerts (1000), each resource once", readSensorQueue},
		"push":         {"push:BUDGET[:SHARE]", "the site tells of real changes, of each with probability SHARE (1), as by IndexNow", readPush},
		"delta":        {"delta:K:PART", "K robots ask first, and get of what changed a difference: PART of its bytes (RFC 3229)", readDelta},
		"bundle":       {"bundle:K:COUNT", "K robots ask of COUNT resources in one request and download what changed of them", readBundle},
		"feed":         {"feed:PERIOD:BUDGET[:LENGTH]", "every PERIOD units a feed of the last LENGTH changes (100) is read, and what it names is fetched", readFeed},
		"difference":   {"difference:PART", "the site sends of every change a difference: PART of the resource's bytes", readDifference},
		"batch":        {"batch:PERIOD", "every PERIOD units the site sends all resources that changed", readBatch(false)},
		"site":         {"site:PERIOD", "every PERIOD units all of the site is sent", readBatch(true)},
		"deliver":      {"deliver", "the site sends every changed resource itself, as by WebSub with content", readDeliver},
		"sitemap":      {"sitemap:PERIOD:BUDGET", "every PERIOD units a list of all resources with dates is read, and what changed is fetched", readListing(false)},
		"mobile":       {"mobile:PERIOD:BUDGET", "every PERIOD units a program at the server sends digests of what changed, and that is fetched", readListing(true)},
		"plan":         {"plan:POLICY:BUDGET|R/s[:ask]", "the schedule of revisit follows a policy or rule for known change rates, as the live robot does", readPlan(false)},
		"learn":        {"learn:POLICY:BUDGET|R/s[:ask]", "the same with change rates estimated from its visits, as the live robot does", readPlan(true)},
		"told":         {"told:RULE:BUDGET|R/s[:SHARE[:FALSE]]", "the same with a site that tells of each real change with probability SHARE (1), and FALSE times a unit of time and page of none (0)", readTold},
		"value":        {"value:RULE:BUDGET|R/s[:ask]", "always the resource of the greatest value by a rule of revisit, for known change rates", readValue},
	}
}

// Variant is a way of watching, read from its text.
type Variant struct {
	text string
	make func(field.Field) (Strategy, error)
}

// String returns the text that Parse reads.
func (v Variant) String() string { return v.text }

func (v Variant) makeStrategy(f field.Field) (Strategy, error) {
	if v.make == nil {
		return nil, fmt.Errorf("no variant was given")
	}
	return v.make(f)
}

// Variants returns how each variant is written and what it does, in order.
func Variants() (use, help []string) {
	m := variantMakers()
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		use, help = append(use, m[n].use), append(help, m[n].help)
	}
	return use, help
}

// Parse reads a variant: its name and arguments, with colons between.
func Parse(text string) (Variant, error) {
	parts := strings.Split(text, ":")
	m := variantMakers()
	mk, ok := m[parts[0]]
	if !ok {
		names := make([]string, 0, len(m))
		for n := range m {
			names = append(names, n)
		}
		use, _ := Variants()
		return Variant{}, fmt.Errorf("%w: no variant %q%s; there are %s", ErrInput, text, spell.Suggest(parts[0], names), strings.Join(use, ", "))
	}
	f, err := mk.read(parts[1:])
	if err != nil {
		return Variant{}, fmt.Errorf("%w: variant %q: %w; it is written %s", ErrInput, text, err, mk.use)
	}
	return Variant{text: text, make: f}, nil
}

// readPart reads a part of a resource's bytes.
func readPart(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v > 0 && v <= 1) {
		return 0, fmt.Errorf("part %q is not in (0, 1]", s)
	}
	return v, nil
}

// readPeriod reads a time between two of something.
func readPeriod(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 1 && v <= field.MaxTime) {
		return 0, fmt.Errorf("period %q is no number of units from 1 up", s)
	}
	return v, nil
}

// parseRobotCount reads a number of robots or downloaders.
func parseRobotCount(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 1_000_000 {
		return 0, fmt.Errorf("%q is no number from 1 to 1000000", s)
	}
	return n, nil
}
