package plugin

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// decoded gives KIND/NAME of each object in a stream of YAML documents, or in JSON, which is one object or a List.
func decoded(t *testing.T, format, text string) []string {
	t.Helper()
	var objects []unstructured.Unstructured
	if format == "json" {
		var one unstructured.Unstructured
		if err := json.Unmarshal([]byte(text), &one.Object); err != nil { // refuses what follows a first value
			t.Fatalf("%v:\n%s", err, text)
		}
		objects = append(objects, one)
	} else {
		decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
		for {
			var one unstructured.Unstructured
			err := decoder.Decode(&one.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			objects = append(objects, one)
		}
	}
	var names []string
	for _, object := range objects {
		if !object.IsList() {
			names = append(names, object.GetKind()+"/"+object.GetName())
			continue
		}
		if object.GetKind() != "List" || object.GetAPIVersion() != "v1" {
			t.Errorf("the list is a %s of %s", object.GetKind(), object.GetAPIVersion())
		}
		list, err := object.ToList()
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			names = append(names, item.GetKind()+"/"+item.GetName())
		}
	}
	return names
}

// What each command prints with -o yaml and -o json decodes, with all objects in it.
func TestOutputDecodes(t *testing.T) {
	objects, err := manifests()
	if err != nil {
		t.Fatal(err)
	}
	var installed []string
	for _, object := range objects {
		installed = append(installed, object.GetKind()+"/"+object.GetName())
	}
	two := []string{"Node/n1", "Node/n2"}
	for _, test := range []struct {
		arguments []string
		want      []string
	}{
		{[]string{"install", "--dry-run=client"}, installed},
		{[]string{"assign", "n1", "n2", "--config=workers", "--yes", "--wait=false"}, two},
		{[]string{"assign", "-l", "pool=workers", "--config=workers", "--dry-run=client", "--parallel=1"}, two},
		{[]string{"assign", "n1", "--config=workers", "--dry-run=server"}, two[:1]},
		{[]string{"reset", "n1", "n2", "--yes", "--wait=false"}, two},
		{[]string{"retry", "n1", "n2", "--yes", "--wait=false"}, two},
		{[]string{"rollback", "n1", "--to=workers", "--yes", "--wait=false"}, two[:1]},
		{[]string{"push", "pool", "-f", "-"}, []string{"ConfigMap/pool-" + "*"}},
		{[]string{"status"}, []string{"NodeKubeletConfig/n1", "NodeKubeletConfig/n2"}},
		{[]string{"status", "n1"}, []string{"NodeKubeletConfig/n1"}},
		{[]string{"history", "n1"}, []string{"NodeAssignments/n1"}},
		{[]string{"config", "n1"}, []string{"KubeletConfiguration/"}},
	} {
		for _, format := range []string{"yaml", "json"} {
			t.Run(strings.Join(test.arguments, " ")+" "+format, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					config := configMapOf("workers", someConfig)
					b := newBench(t, assignedNode("n1", config), assignedNode("n2", config), config)
					b.answers(t, nil)
					b.input.WriteString(someConfig)
					stdout, _ := b.do(t, append(test.arguments, "-o", format)...)
					got := decoded(t, format, stdout)
					matches := func(got, want string) bool {
						start, found := strings.CutSuffix(want, "*")
						return got == want || found && strings.HasPrefix(got, start)
					}
					if !slices.EqualFunc(got, test.want, matches) {
						t.Errorf("got %v, want %v", got, test.want)
					}
				})
			})
		}
	}
}

// A List is for several: one object that was named is itself, as kubectl get has it.
func TestOneObjectIsNoList(t *testing.T) {
	config := configMapOf("workers", someConfig)
	for want, arguments := range map[string][]string{
		"NodeKubeletConfig": {"status", "n1", "-o", "jsonpath={.kind}"},
		"List":              {"status", "-o", "jsonpath={.kind}"},
		"Node":              {"assign", "n1", "--config=workers", "--dry-run=client", "-o", "jsonpath={.kind}"},
	} {
		if stdout, _ := newBench(t, assignedNode("n1", config), config).do(t, arguments...); stdout != want {
			t.Errorf("%v: %q, want %q", arguments, stdout, want)
		}
	}
}

// A format that is none is said before anything is done.
func TestOutputFormatThatIsNone(t *testing.T) {
	config := configMapOf("workers", someConfig)
	b := newBench(t, localNode("n1"), config)
	b.answers(t, nil)
	code, _, stderr := b.run(t, "assign", "n1", "--config=workers", "--yes", "--wait=false", "-o", "tabel")
	if code != 1 || b.assigned(t, "n1") != "" {
		t.Errorf("exit code %d, assigned %q", code, b.assigned(t, "n1"))
	}
	contains(t, stderr, `output format "tabel"`)
}

// What is OK, as --not-ok lists it and as the exit code tells.
func TestStatusNotOK(t *testing.T) {
	b := newBench(t, statusNodes()...)
	if stdout, _ := b.do(t, "status", "--not-ok", "-o", "name"); stdout != "node/n3-refused\nnode/n4-waits\nnode/n6-away\nnode/n7-field\nnode/n8-forger\n" {
		t.Errorf("not OK are\n%s", stdout)
	}
	for _, test := range []struct {
		arguments []string
		code      int
	}{
		{[]string{}, 0},
		{[]string{"--exit-code"}, 1},
		{[]string{"--exit-code", "--not-ok"}, 1},
		{[]string{"--exit-code", "-o", "json"}, 1},
		{[]string{"--exit-code", "n1-local", "n2-good", "n5-alone"}, 0},
		{[]string{"--exit-code", "nobody"}, 2},
		{[]string{"--exit-code", "-o", "tabel"}, 2},
		{[]string{"nobody"}, 1},
		{[]string{"--watch", "--exit-code"}, 2},
	} {
		code, stdout, stderr := b.run(t, append([]string{"status"}, test.arguments...)...)
		if code != test.code || code < 2 && strings.Contains(stderr, "error:") && test.arguments[0] != "nobody" {
			t.Errorf("%v: exit code %d, want %d\n%s%s", test.arguments, code, test.code, stdout, stderr)
		}
	}
	_, stderr := newBench(t, localNode("n1")).do(t, "status", "--not-ok")
	contains(t, stderr, "Every node is OK.")
	unassigned := newNode("n1")
	if v := view.NodeOf(unassigned); !v.OK() {
		t.Error("a node without a supervisor, and with nothing assigned, is not OK")
	}
	unassigned.Annotations = map[string]string{"kubelet-supervisor.io/config-source": workersText}
	if v := view.NodeOf(unassigned); v.OK() || v.Wellness() == corev1.ConditionTrue {
		t.Error("a node that nobody serves is OK with an assignment")
	}
}
