package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http/httpguts"

	"github.com/freshet/freshet/crawl/visithours"
	"github.com/freshet/freshet/internal/spell"
)

// Headers are header fields by name.
type Headers map[string]string

// ownHeaders are fields that the robot sets itself.
var ownHeaders = []string{
	"accept-encoding", "connection", "content-length", "expect", "host", "if-modified-since", "if-none-match", "keep-alive", "proxy-authorization", "proxy-connection", "range", "te", "trailer",
	"transfer-encoding", "upgrade",
}

// ParseHeader reads a field written as "Name: value". Its errors do not show the value.
func ParseHeader(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, ":")
	if !ok {
		return "", "", fmt.Errorf("a header is written as \"Name: value\"")
	}
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	return name, value, checkHeader(name, value)
}

func checkHeader(name, value string) error {
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("%q is no name of a header", name)
	case strings.EqualFold(name, "user-agent"):
		return fmt.Errorf("the User-Agent is set by user_agent or agent.name")
	case slices.Contains(ownHeaders, strings.ToLower(name)):
		return fmt.Errorf("%s is set by the robot", name)
	case value == "" || !httpguts.ValidHeaderFieldValue(value):
		return fmt.Errorf("the value of %s is empty or has characters that no header may have", name)
	}
	return nil
}

// UnmarshalYAML reads a mapping of names to values.
func (h *Headers) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: headers are written as {Name: value}", n.Line)}}
	}
	var m map[string]string
	if err := n.Decode(&m); err != nil {
		return err
	}
	*h = m
	return nil
}

// pagePolicies are the policies that look at one page alone.
var pagePolicies = []string{"half-change", "adaptive"}

// checkSite finds settings that cannot work at a source that is a web site, or that only
// web sites have. prefix is how the source's keys are named in errors.
func (s *Source) checkSite(prefix string, fail func(string, ...any)) {
	if s.BudgetBytes < 0 || s.MaxPages < 0 || s.MaxBody < 0 {
		fail("%sbudget_bytes, max_pages and max_body are not negative", prefix)
	}
	if s.Policy != "" && !slices.Contains(pagePolicies, s.Policy) {
		fail("%spolicy: %q is none of %s%s; the policies that divide a budget hold for all sources: crawl.policy", prefix, s.Policy, strings.Join(pagePolicies, ", "), spell.Suggest(s.Policy, pagePolicies))
	}
	for name, value := range s.Headers {
		if err := checkHeader(name, value); err != nil {
			fail("%sheaders: %v", prefix, err)
		}
	}
	if s.UserAgent != "" && !httpguts.ValidHeaderFieldValue(s.UserAgent) {
		fail("%suser_agent: %q has characters that no header may have", prefix, s.UserAgent)
	}
	if _, err := visithours.Parse(s.Hours, s.TimeZone); err != nil {
		fail("%s%v", prefix, err)
	}
	if s.Password != "" && s.PasswordFile != "" {
		fail("%spassword and password_file: give one of them", prefix)
	}
	if !s.Share() && s.User == "" && (s.Password != "" || s.PasswordFile != "") {
		fail("%suser: a password needs a user", prefix)
	}
	if s.Share() && (s.Policy != "" || s.BudgetBytes != 0 || s.MaxPages != 0 || s.MaxBody != 0 || s.UserAgent != "" || len(s.Headers) > 0 || s.Hours != "") {
		fail("%surl: policy, budget_bytes, max_pages, max_body, user_agent, headers and hours are settings of web sites, not of shares", prefix)
	}
}
