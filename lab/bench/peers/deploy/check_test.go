// Package deploy reads the files of deploy as the programs that they are for do:
// Kubernetes' own types, in which an unknown or misspelt field is an error, and
// the loader of Docker Compose with its schema. It is a module of its own, so
// that the program does not depend on theirs:
//
//	cd lab/bench/peers/deploy && go test
package deploy

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the types of what the manifests hold.
var kinds = map[string]func() any{
	"v1/Service":                             func() any { return new(corev1.Service) },
	"apps/v1/StatefulSet":                    func() any { return new(appsv1.StatefulSet) },
	"policy/v1/PodDisruptionBudget":          func() any { return new(policyv1.PodDisruptionBudget) },
	"autoscaling/v2/HorizontalPodAutoscaler": func() any { return new(autoscalingv2.HorizontalPodAutoscaler) },
}

func TestKubernetes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../deploy/kubernetes/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	n := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(b), "\n---\n") {
			var head struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			make := kinds[head.APIVersion+"/"+head.Kind]
			if make == nil {
				t.Errorf("%s: %s/%s is no kind that this test knows", file, head.APIVersion, head.Kind)
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(doc), make()); err != nil {
				t.Errorf("%s: %s: %v", file, head.Kind, err)
			}
			n++
		}
	}
	if n < 5 {
		t.Errorf("only %d objects", n)
	}
	if err := yaml.UnmarshalStrict([]byte("spec: {replica: 3}"), new(appsv1.StatefulSet)); err == nil {
		t.Error("a misspelt field passes")
	}
}

func TestCompose(t *testing.T) {
	t.Parallel()
	o, err := cli.NewProjectOptions([]string{"../../../deploy/compose.yaml"}, cli.WithEnv([]string{"POSTGRES_PASSWORD=a", "BUCKET_PASSWORD=b", "CONSOLE_PASSWORD=c"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	node, err := p.GetService("node")
	if err != nil {
		t.Fatal(err)
	}
	if !node.ReadOnly || node.Build == nil || len(node.Ports) != 1 || node.DependsOn["database"].Condition != "service_healthy" {
		t.Errorf("the node: %+v", node)
	}
	if o, err = cli.NewProjectOptions([]string{"../../../deploy/compose.yaml"}, cli.WithEnv(nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.LoadProject(context.Background()); err == nil {
		t.Error("passwords are not asked for")
	}
}
