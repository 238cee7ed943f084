package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

func (b *bench) pushed(t *testing.T, namespace string) []corev1.ConfigMap {
	t.Helper()
	list, err := b.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: document.PurposeLabel + "=" + document.PurposeConfiguration})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func inFile(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	writeFile(t, file, content)
	return file
}

func TestPush(t *testing.T) {
	b := newBench(t)
	file := inFile(t, "kubelet.yaml", someConfig+"maxPodz: 3\n")
	stdout, stderr := b.do(t, "push", "workers", "-f", file)
	made := b.pushed(t, cmdutil.ConfigNamespace)
	if len(made) != 1 {
		t.Fatalf("%d ConfigMaps, want 1", len(made))
	}
	c := made[0]
	if stdout != "configmap/"+c.Name+" created\n" {
		t.Errorf("stdout is %q", stdout)
	}
	contains(t, stderr, `warning: field "maxPodz" is unknown`, "maxPods: 42 (disrupts-pods)\n", "kubectl kubelet assign NODE --config kubelet-config/"+c.Name)
	if want, _ := document.HashedName("workers", c.Data, nil); c.Name != want || c.Immutable == nil || !*c.Immutable || c.Annotations[document.NameAnnotation] != "workers" {
		t.Errorf("got %+v, want the name %s, immutable", c, want)
	}
	if stdout, _ = b.do(t, "push", "workers", "-f", file); stdout != "configmap/"+c.Name+" unchanged\n" {
		t.Errorf("pushing the same again says %q", stdout)
	}
	if stdout, _ = b.do(t, "push", "workers", "-f", file, "-o", "name"); stdout != "configmap/"+c.Name+"\n" {
		t.Errorf("-o name says %q", stdout)
	}
}

func TestPushFrom(t *testing.T) {
	for _, test := range []struct {
		name      string
		arguments func(t *testing.T) []string
		namespace string
		keys      string
	}{
		{"stdin", func(*testing.T) []string { return []string{"-f", "-"} }, cmdutil.ConfigNamespace, "kubelet"},
		{"another key", func(*testing.T) []string { return []string{"-f", "key.yaml=-"} }, cmdutil.ConfigNamespace, "key.yaml"},
		{"another namespace", func(*testing.T) []string { return []string{"-f", "-", "-n", "kube-system"} }, "kube-system", "kubelet"},
		{"files beside it", func(t *testing.T) []string {
			return []string{"-f", "-", "-f", inFile(t, "ca.crt", "CA"), "-f", "other=" + inFile(t, "x", "\xff\xfe")}
		}, cmdutil.ConfigNamespace, "ca.crt,kubelet,other"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.input.WriteString(someConfig)
			b.do(t, append([]string{"push", "workers"}, test.arguments(t)...)...)
			made := b.pushed(t, test.namespace)
			if len(made) != 1 {
				t.Fatalf("%d ConfigMaps in %s, want 1", len(made), test.namespace)
			}
			if keys := strings.Join(document.SortedKeys(document.Payload(&made[0])), ","); keys != test.keys {
				t.Errorf("keys %s, want %s", keys, test.keys)
			}
		})
	}
}

func TestPushRefuses(t *testing.T) {
	for _, test := range []struct {
		name, input string
		arguments   []string
		want        string
	}{
		{"what does not decode", "maxPods: [", []string{"-f", "-"}, "does not decode"},
		{"another kind", "apiVersion: v1\nkind: ConfigMap\n", []string{"-f", "-"}, "another kind than KubeletConfiguration"},
		{"a value of another type", document.Header + "maxPods: many\n", []string{"-f", "-"}, "maxPods"},
		{"an unknown field, strictly", document.Header + "maxPodz: 3\n", []string{"-f", "-", "--strict"}, `"maxPodz" is unknown`},
		{"bytes", "\xff\xfe", []string{"-f", "-"}, "is no text"},
		{"a file that is not there", "", []string{"-f", "/nowhere/kubelet.yaml"}, "/nowhere/kubelet.yaml"},
		{"no file", "", nil, "give fields with --set, a file with -f or --layer, or a node with --edit"},
		{"file and node", "", []string{"-f", "-", "--edit", "n1"}, "give fields with --set, a file with -f or --layer, or a node with --edit"},
		{"two files of one key", someConfig, []string{"-f", "-", "-f", "kubelet=/dev/null"}, `two files are key "kubelet"`},
		{"a key that is none", someConfig, []string{"-f", "a b=-"}, `key "a b"`},
		{"a dry run that is none", someConfig, []string{"-f", "-", "--dry-run=maybe"}, "none, server or client"},
		{"too much", document.Header + "#" + strings.Repeat("x", 1<<20) + "\n", []string{"-f", "-"}, "larger than 1 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.input.WriteString(test.input)
			code, _, stderr := b.run(t, append([]string{"push", "workers"}, test.arguments...)...)
			if code != 1 || len(b.pushed(t, "")) != 0 {
				t.Errorf("exit code %d, %d ConfigMaps; want 1 and none", code, len(b.pushed(t, "")))
			}
			contains(t, stderr, test.want)
		})
	}
}

// What stands there already under the name.
func TestPushOver(t *testing.T) {
	name, err := document.HashedName("workers", map[string]string{"kubelet": someConfig}, nil)
	if err != nil {
		t.Fatal(err)
	}
	byHand := configMapOf(name, someConfig)
	byHand.Labels = nil
	b := newBench(t, byHand)
	file := inFile(t, "kubelet.yaml", someConfig)
	if stdout, _ := b.do(t, "push", "workers", "-f", file); stdout != "configmap/"+name+" made immutable\n" {
		t.Errorf("over one that kubectl made: %q", stdout)
	}
	if made := b.pushed(t, cmdutil.ConfigNamespace); len(made) != 1 || made[0].Immutable == nil {
		t.Errorf("it was not adopted: %v", made)
	}

	b = newBench(t, configMapOf(name, someConfig+"# edited\n"))
	code, _, stderr := b.run(t, "push", "workers", "-f", file)
	if code != 1 {
		t.Errorf("over another content: exit code %d", code)
	}
	contains(t, stderr, "exists with another content")
}

func TestPushDryRun(t *testing.T) {
	b := newBench(t)
	stdout, _ := b.do(t, "push", "workers", "-f", inFile(t, "k", someConfig), "--dry-run=client", "-o", "yaml")
	contains(t, stdout, "apiVersion: v1", "immutable: true", "kind: ConfigMap")
	if len(b.pushed(t, "")) != 0 {
		t.Error("the dry run made it")
	}
}

func TestPushEdit(t *testing.T) {
	for _, test := range []struct {
		name  string
		edit  func(text string) string
		made  int
		code  int
		words string
	}{
		{"changed", func(text string) string { return strings.Replace(text, "maxPods: 20", "maxPods: 42", 1) }, 1, 0, "Assign it"},
		{"left as it was", func(text string) string { return text + "\n" }, 0, 0, "Nothing was changed"},
		{"broken", func(text string) string { return text + "maxPods: [" }, 0, 1, "it is kept in "},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, knowing(localNode("n1")))
			b.configz["maxPods"] = int64(20)
			b.input.WriteString("y\n")
			edited := ""
			b.factory.Edit = func(file string) error {
				edited = file
				return rewrite(file, test.edit)
			}
			code, _, stderr := b.run(t, "push", "workers", "--edit", "n1")
			if made := b.pushed(t, cmdutil.ConfigNamespace); code != test.code || len(made) != test.made {
				t.Errorf("exit code %d, %d ConfigMaps; want %d, %d\n%s", code, len(made), test.code, test.made, stderr)
			}
			contains(t, stderr, test.words)
			if _, err := os.Stat(edited); (err == nil) != (test.code != 0) {
				t.Errorf("the edited file: %v", err)
			}
			_ = os.Remove(edited)
		})
	}
}

// The editor may have arguments of its own.
func TestEditor(t *testing.T) {
	file := inFile(t, "a file", "before")
	t.Setenv("KUBE_EDITOR", "sed -i s/before/after/")
	b := newBench(t)
	if err := b.factory.Edit(file); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "after" {
		t.Errorf("got %q, %v", text, err)
	}
	t.Setenv("KUBE_EDITOR", "false")
	if err := b.factory.Edit(file); err == nil || !strings.Contains(err.Error(), "KUBE_EDITOR") {
		t.Errorf("an editor that fails: %v", err)
	}
}

// rewrite is what an editor does to a file.
func rewrite(file string, edit func(text string) string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(edit(string(text))), 0o600)
}
