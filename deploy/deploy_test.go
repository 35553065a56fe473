// Package deploy holds files for running freshet; this test keeps them true to
// the program.
package deploy

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/freshet/freshet/config"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// documents decodes all YAML documents of a file.
func documents(t *testing.T, path string) []map[string]any {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(read(t, path)))
	var out []map[string]any
	for {
		var doc map[string]any
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, doc)
	}
}

// at walks down a document.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				t.Fatalf("%v: no element %d", path, p)
			}
			v = l[p]
		}
		if v == nil {
			t.Fatalf("%v: nothing at %v", path, p)
		}
	}
	return v
}

// The configuration is accepted with what the environments of compose and
// Kubernetes add to it.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	hash := "$2a$10$ElT2Xw7mR1bCyKp9q4vQ5uYk8a1m0hZkQ6v3Jb7yXl4o0w5t8Yw2e"
	env := []string{"FRESHET_CONSOLE_PASSWORD=" + hash}
	node := at(t, documents(t, "compose.yaml")[0], "services", "node", "environment").(map[string]any)
	for k, v := range node {
		if strings.HasPrefix(k, "FRESHET_") && k != "FRESHET_CONSOLE_PASSWORD" {
			env = append(env, k+"="+v.(string))
		}
	}
	c, err := config.Load("freshet.yaml", env, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Database == "" || c.Archive.Bucket == "" || c.Console.Password != hash || len(c.Sources) == 0 {
		t.Errorf("%+v", c)
	}
	if c.Console.Header != "" || len(c.Console.Proxies) > 0 {
		t.Error("a network of containers is believed to be a proxy: any of them may say who it is")
	}
}

// Kubernetes: the autoscaler's target exists, selectors match labels, variables
// are keys of the configuration, nobody is root.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	var set, policy map[string]any
	for _, d := range documents(t, "kubernetes/freshet.yaml") {
		at(t, d, "apiVersion")
		if d["kind"] == "StatefulSet" {
			set = d
			continue
		}
		if d["kind"] == "NetworkPolicy" {
			policy = d
			continue
		}
		selector := at(t, d, "spec", "selector").(map[string]any)
		if labels, ok := selector["matchLabels"].(map[string]any); ok {
			selector = labels
		}
		if selector["app"] != "freshet" {
			t.Errorf("%v selects %v", d["kind"], selector)
		}
	}
	spec := at(t, set, "spec", "template", "spec")
	if at(t, set, "spec", "template", "metadata", "labels", "app") != "freshet" || at(t, spec, "securityContext", "runAsNonRoot") != true {
		t.Error("labels or user of the pods")
	}
	container := at(t, spec, "containers", 0)
	if at(t, policy, "spec", "podSelector", "matchLabels", "app") != "freshet" || at(t, policy, "spec", "ingress", 0, "ports", 0, "port") != at(t, container, "ports", 0, "name") {
		t.Error("the network policy does not guard the port of the pods")
	}
	env := []string{}
	for _, v := range at(t, container, "env").([]any) {
		if name := at(t, v, "name").(string); strings.HasPrefix(name, "FRESHET_") {
			env = append(env, name+"=postgres://x")
		}
	}
	if _, err := config.Load("freshet.yaml", env, nil); err != nil {
		t.Error(err)
	}
	mounts, volumes := map[any]bool{}, map[any]bool{"data": true}
	for _, v := range at(t, spec, "volumes").([]any) {
		volumes[at(t, v, "name")] = true
	}
	for _, m := range at(t, container, "volumeMounts").([]any) {
		mounts[at(t, m, "name")] = true
	}
	if len(mounts) != len(volumes) {
		t.Errorf("volumes %v, mounts %v", volumes, mounts)
	}
	scaler := documents(t, "kubernetes/autoscaler.yaml")[0]
	ref := at(t, scaler, "spec", "scaleTargetRef")
	if at(t, ref, "kind") != set["kind"] || at(t, ref, "name") != at(t, set, "metadata", "name") {
		t.Errorf("the autoscaler scales %v", ref)
	}
	text := read(t, "kubernetes/autoscaler.yaml")
	rule := regexp.MustCompile(`metricsQuery: (.*)\n#\s+name: {as: (\w+)}`).FindStringSubmatch(text)
	if rule == nil || at(t, scaler, "spec", "metrics", 0, "external", "metric", "name") != rule[2] {
		t.Fatalf("the rule %q does not make the autoscaler's metric", rule)
	}
	for _, name := range regexp.MustCompile(`freshet_\w+`).FindAllString(rule[1], -1) {
		if !metrics(t)[name] {
			t.Errorf("no metric %s", name)
		}
	}
}

// metrics are the names that the program gives to what it measures.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`NewDesc\("(freshet_\w+)"`).FindAllStringSubmatch(read(t, "../app/metrics.go"), -1) {
		out[m[1]] = true
	}
	if len(out) < 10 {
		t.Fatalf("only %d metrics", len(out))
	}
	return out
}

// The dashboard asks for metrics that there are.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "grafana.json")), &d); err != nil {
		t.Fatal(err)
	}
	known, asked := metrics(t), 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			for _, name := range regexp.MustCompile(`freshet_\w+`).FindAllString(target.Expr, -1) {
				if asked++; !known[name] {
					t.Errorf("%s: no metric %s", p.Title, name)
				}
			}
		}
	}
	if asked < 10 {
		t.Errorf("the dashboard asks for %d metrics", asked)
	}
}

// The unit starts the command that the container starts, as nobody in
// particular.
func TestUnit(t *testing.T) {
	t.Parallel()
	unit, image := read(t, "freshet.service"), read(t, "Dockerfile")
	for _, want := range []string{
		"ExecStart=/usr/local/bin/freshet serve --config /etc/freshet/freshet.yaml", "User=freshet", "NoNewPrivileges=yes",
		"RestrictNamespaces=user pid net", "AF_NETLINK", "UMask=0077", "StateDirectoryMode=0700", "MemoryMax=", "TasksMax=", "SystemCallFilter=",
	} {
		if !strings.Contains(unit, want) {
			t.Errorf("the unit lacks %s", want)
		}
	}
	for _, want := range []string{"CGO_ENABLED=0", "USER 65532:65532", `CMD ["serve", "--config", "/etc/freshet/freshet.yaml"]`} {
		if !strings.Contains(image, want) {
			t.Errorf("the image lacks %s", want)
		}
	}
}

// Every image has a version of its own, so that what runs does not change unasked, and the
// console answers to the names of the services.
func TestImagesAndHosts(t *testing.T) {
	t.Parallel()
	images := 0
	for _, file := range []string{"compose.yaml", "kubernetes/freshet.yaml"} {
		for _, m := range regexp.MustCompile(`(?m)^\s*image:\s*(\S+)`).FindAllStringSubmatch(read(t, file), -1) {
			images++
			if _, tag, ok := strings.Cut(m[1], ":"); !ok || !regexp.MustCompile(`\d+\.\d+|\d{4}-\d\d-\d\d`).MatchString(tag) {
				t.Errorf("%s: image %s, want a tag with a full version", file, m[1])
			}
		}
	}
	if images < 4 {
		t.Errorf("%d images, want at least 4", images)
	}
	c, err := config.Load("freshet.yaml", []string{"FRESHET_CONSOLE_PASSWORD=$2a$10$ElT2Xw7mR1bCyKp9q4vQ5uYk8a1m0hZkQ6v3Jb7yXl4o0w5t8Yw2e"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents(t, "kubernetes/freshet.yaml") {
		name, _ := at(t, d, "metadata", "name").(string)
		if d["kind"] != "Service" || at(t, d, "spec").(map[string]any)["clusterIP"] == "None" {
			continue
		}
		if !strings.Contains(strings.Join(c.Console.Hosts, " ")+" ", name+" ") {
			t.Errorf("console.hosts %v lack the service %s", c.Console.Hosts, name)
		}
	}
}
