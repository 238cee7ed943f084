package controller

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
)

// The policy kubelet-supervisor-revisions is about all that this controller makes: its labels and its names. That the API server then refuses others
// is proved by the table of docs/why/security.md.
func TestThePolicyIsAboutAllThatIsMade(t *testing.T) {
	text, err := deploy.ControllerManifests.ReadFile("manifests/controller/policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var about string
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var policy struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				MatchConditions []struct{ Name, Expression string }
			}
		}
		if err := yaml.Unmarshal([]byte(document), &policy); err != nil {
			t.Fatal(err)
		}
		if policy.Kind == "ValidatingAdmissionPolicy" && policy.Metadata.Name == "kubelet-supervisor-revisions" {
			about = policy.Spec.MatchConditions[0].Expression
		}
	}
	for _, label := range []string{PoolLabel, goneLabel} {
		if !strings.Contains(about, "'"+label+"'") {
			t.Errorf("it does not have the label %s: %s", label, about)
		}
	}
	pattern := regexp.MustCompile(`matches\('([^']*)'\)`).FindStringSubmatch(about)
	if pattern == nil {
		t.Fatalf("it names no ConfigMap: %s", about)
	}
	named := regexp.MustCompile(pattern[1])
	for name, want := range map[string]bool{"pool-a-0123456789": true, goneName("a"): true, goneName("a-b.c"): true, goneName("gone"): true,
		"pool-a-production": false, "pool-gone": false, "pool-a-gone-too": false, "a-pool-a-gone": false} {
		if named.MatchString(name) != want {
			t.Errorf("it is about ConfigMap %s: %v", name, !want)
		}
	}
}
