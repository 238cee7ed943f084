package docs

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// schema is a part of the KubeletPools' definition.
type schema struct {
	Default    any                `json:"default"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
}

// fields calls f for each field below, but for those of Kubernetes' own types.
func (s *schema) fields(path string, f func(path string, field *schema)) {
	for name, field := range s.Properties {
		at := path + "." + name
		f(at, field)
		if strings.HasSuffix(name, "elector") || name == "conditions" {
			continue
		}
		field.fields(at, f)
		if field.Items != nil {
			field.Items.fields(at+"[]", f)
		}
	}
}

// definition is the schema of a kind.
func definition(t *testing.T, kind string) *schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/manifests/controller/crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var crd struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Schema struct{ OpenAPIV3Schema *schema }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &crd); err != nil {
			t.Fatal(err)
		}
		if crd.Spec.Names.Kind == kind {
			return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		}
	}
	t.Fatalf("there is no definition of %s", kind)
	return nil
}

const poolPage = "docs/reference/pool.md"

var fieldRow = regexp.MustCompile("(?m)^\\| `((?:spec|status)\\.[^`]+)` \\|(?: (?:`([^`]*)` )?\\|)?(.*)$")

// The page has every field of a KubeletPool and of a KubeletRolloutBudget with its default, and no other one.
func TestFieldsOfAPool(t *testing.T) {
	const second = "\n## KubeletRolloutBudget\n"
	pool, budget, is := strings.Cut(pages(t)[poolPage], second)
	if !is {
		t.Fatalf("%s has no heading %q", poolPage, second)
	}
	if n := checkFields(t, pool, definition(t, "KubeletPool"), "spec", "status"); n < 75 {
		t.Errorf("a KubeletPool has %d fields", n)
	}
	if n := checkFields(t, budget, definition(t, "KubeletRolloutBudget"), "spec", "status"); n < 15 {
		t.Errorf("a KubeletRolloutBudget has %d fields", n)
	}
}

// checkFields compares the rows of a text with what is defined, and counts the fields.
func checkFields(t *testing.T, text string, of *schema, parts ...string) (there int) {
	t.Helper()
	defaults := map[string]string{}
	for _, row := range fieldRow.FindAllStringSubmatch(text, -1) {
		defaults[row[1]] = row[2]
		if strings.Trim(row[3], " |") == "" && strings.HasPrefix(row[1], "spec.") {
			t.Errorf("%s: %s means nothing", poolPage, row[1])
		}
	}
	for _, part := range parts {
		of.Properties[part].fields(part, func(path string, field *schema) {
			there++
			text, is := defaults[path]
			if !is {
				t.Errorf("%s does not have %s", poolPage, path)
				return
			}
			delete(defaults, path)
			var value any
			if err := yaml.Unmarshal([]byte(text), &value); err != nil || part == "spec" && !reflect.DeepEqual(value, field.Default) {
				t.Errorf("%s: the default of %s is %#v, not %q", poolPage, path, field.Default, text)
			}
		})
	}
	for path := range defaults {
		t.Errorf("%s has %s, which is not defined", poolPage, path)
	}
	return there
}

// constants are the values of a file's constants that are named so.
func constants(t *testing.T, file, named string, least int) (values []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`(?m)^\t`+named+` += (?:prefix \+ )?"([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		values = append(values, match[1])
	}
	if len(values) < least {
		t.Fatalf("found only %v in %s", values, file)
	}
	return values
}

// The page has every class, reason, event, annotation, label and metric by its name.
func TestNamesOfPools(t *testing.T) {
	page := pages(t)[poolPage]
	has := func(what, text string) {
		t.Helper()
		if !strings.Contains(page, text) {
			t.Errorf("%s does not have %s %s", poolPage, what, text)
		}
	}
	for _, class := range constants(t, "fleet/rollout/class.go", `\w+ +Class`, 14) {
		has("class", "\n| `"+class+"` |")
	}
	for _, reason := range constants(t, "fleet/rollout/class.go", `Reason\w+`, 17) {
		if !regexp.MustCompile(`\[[\w, ]*\b` + reason + `\b[\w, ]*\]\(\.\./operate/pools\.md#`).MatchString(page) {
			t.Errorf("%s does not lead to reason %s", poolPage, reason)
		}
	}
	for _, event := range constants(t, "fleet/rollout/class.go", `Event\w+`, 8) {
		has("event", "`"+event+"`")
	}
	names := constants(t, "fleet/rollout/node.go", `\w+(?:Annotation|Label)`, 4)
	for _, name := range append(names, constants(t, "api/node/v1/names.go", `\w+Annotation`, 6)...) {
		has("annotation or label", "\n| `kubelet-supervisor.io/"+strings.TrimPrefix(name, "kubelet-supervisor.io/")+"` |")
	}
	for _, kind := range []string{"Ready", "Progressing", "Stalled"} {
		has("condition", "\n| `"+kind+"` |")
	}
	metrics, err := os.ReadFile(filepath.Join(root, "fleet/controller/metrics.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range regexp.MustCompile(`"(kubelet_supervisor_pool_\w+)"`).FindAllStringSubmatch(string(metrics), -1) {
		has("metric", "\n| `"+metric[1])
	}
}

// The runbook has every reason of a pool, in a heading.
func TestReasonsOfPoolsAreInTheRunbook(t *testing.T) {
	var headings []string
	for _, line := range prose(pages(t)["docs/operate/pools.md"]) {
		if match := heading.FindStringSubmatch(line); match != nil {
			headings = append(headings, strings.Split(match[1], ", ")...)
		}
	}
	for _, reason := range constants(t, "fleet/rollout/class.go", `Reason\w+`, 17) {
		if !strings.Contains(" "+strings.Join(headings, " ")+" ", " "+reason+" ") {
			t.Errorf("docs/operate/pools.md has no heading for %s", reason)
		}
	}
}
