//go:build linux

package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

const aPod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: main, image: pause}]}\n"

// The files are those that a kubelet reads: every one that is not hidden and has a pod, whatever it is called, and in its order.
func TestManifests(t *testing.T) {
	folder := filepath.Join(aMachine(t, map[string]string{
		"m/b.yaml": aPod, "m/a.yaml.backup": strings.Replace(aPod, "name: a", "name: a, namespace: kube-system", 1),
		"m/c.json": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"}}`, "m/.hidden.yaml": aPod, "m/below/x.yaml": aPod, "m/README": "not a pod",
		"m/list.yaml": "apiVersion: v1\nkind: List\nitems: []\n", "m/nameless.yaml": "apiVersion: v1\nkind: Pod\n", "m/broken.yaml": "a: [", "m/z-huge.yaml": aPod + strings.Repeat("#\n", mostManifest/2),
		"other/linked.yaml": strings.Replace(aPod, "name: a", "name: linked", 1),
	}), "m")
	if err := os.Symlink("../other/linked.yaml", filepath.Join(folder, "l.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := Manifests(folder)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(list), []string{"a.yaml.backup kube-system/a", "b.yaml default/a", "c.json default/c", "l.yaml default/linked", "z-huge.yaml not read"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if list[0].Digest == list[1].Digest || len(list[0].Digest) != 64 {
		t.Errorf("%+v", list[:2])
	}

	one, err := Manifests(filepath.Join(folder, "b.yaml"))
	if err != nil || !slices.Equal(names(one), []string{"b.yaml default/a"}) {
		t.Errorf("a file alone: %q, %v", names(one), err)
	}
	if none, err := Manifests(filepath.Join(folder, "none")); err != nil || none == nil || len(none) > 0 {
		t.Errorf("no folder: %v, %v", none, err)
	}
	if none, err := Manifests(filepath.Join(folder, "b.yaml", "x")); err == nil || none != nil {
		t.Errorf("no folder above: %v, %v", none, err)
	}
}

func names(list []forecast.Manifest) (names []string) {
	for _, m := range list {
		what := "not read"
		if m.Pod != nil {
			what = m.Pod.Namespace + "/" + m.Pod.Name
		}
		names = append(names, filepath.Base(m.File)+" "+what)
	}
	return names
}

func TestTooManyManifests(t *testing.T) {
	files := map[string]string{}
	for i := range mostManifests + 1 {
		files["m/"+strings.Repeat("x", i%200+1)+string(rune('a'+i/200))] = aPod
	}
	if list, err := Manifests(filepath.Join(aMachine(t, files), "m")); err == nil || list != nil {
		t.Errorf("%d files, %v", len(list), err)
	}
}
