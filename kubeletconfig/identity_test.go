package kubeletconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestIdentify(t *testing.T) {
	type node struct{ folder, kubelet, config, dropIns string }
	argv := func(n node) []string { return []string{"--config=" + n.config, "--config-dir=" + n.dropIns} }
	for name, test := range map[string]struct {
		change func(t *testing.T, n node)
		argv   func(n node) []string
		equal  bool
	}{
		"nothing changed": {func(*testing.T, node) {}, argv, true},
		"binary replaced, same bytes": {func(t *testing.T, n node) {
			write(t, n.kubelet+".new", "binary")
			if err := os.Rename(n.kubelet+".new", n.kubelet); err != nil {
				t.Fatal(err)
			}
		}, argv, true},
		"binary replaced": {func(t *testing.T, n node) {
			write(t, n.kubelet+".new", "another binary")
			rename(t, n.kubelet+".new", n.kubelet)
		}, argv, false},
		"binary touched": {func(t *testing.T, n node) {
			if err := os.Chtimes(n.kubelet, time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}, argv, true}, // it has no build id, so its bytes count
		"flags changed":         {func(*testing.T, node) {}, func(n node) []string { return append(argv(n), "--v=2") }, false},
		"flags split otherwise": {func(*testing.T, node) {}, func(n node) []string { return []string{"--config=" + n.config + " --config-dir=" + n.dropIns} }, false},
		"drop-in changed":       {func(t *testing.T, n node) { write(t, filepath.Join(n.dropIns, "10.conf"), "b") }, argv, false},
		"drop-in added below":   {func(t *testing.T, n node) { write(t, filepath.Join(n.dropIns, "sub", "20.conf"), "") }, argv, false},
		"drop-in renamed": {func(t *testing.T, n node) {
			rename(t, filepath.Join(n.dropIns, "10.conf"), filepath.Join(n.dropIns, "11.conf"))
		}, argv, false},
		"no drop-in by its name":    {func(t *testing.T, n node) { write(t, filepath.Join(n.dropIns, "10.yaml"), "b") }, argv, true},
		"drop-ins gone":             {func(t *testing.T, n node) { rename(t, n.dropIns, n.dropIns+".gone") }, argv, false},
		"local gates changed":       {func(t *testing.T, n node) { write(t, n.config, header+"featureGates: {A: false}") }, argv, false},
		"local file else changed":   {func(t *testing.T, n node) { write(t, n.config, header+"maxPods: 7\nfeatureGates: {A: true}") }, argv, true},
		"local file gone, so gates": {func(t *testing.T, n node) { rename(t, n.config, n.config+".gone") }, argv, false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			n := node{folder, filepath.Join(folder, "kubelet"), filepath.Join(folder, "kubelet.yaml"), filepath.Join(folder, "kubelet.d")}
			write(t, n.kubelet, "binary")
			write(t, n.config, header+"featureGates: {A: true}")
			write(t, filepath.Join(n.dropIns, "10.conf"), "a")
			link := filepath.Join(folder, "link")
			if err := os.Symlink(n.kubelet, link); err != nil {
				t.Fatal(err)
			}
			before, err := Identify(link, argv(n))
			if err != nil {
				t.Fatal(err)
			}
			test.change(t, n)
			after, err := Identify(link, test.argv(n))
			if err != nil {
				t.Fatal(err)
			}
			if equal := before == after; equal != test.equal {
				t.Errorf("equal is %v, want %v:\n%s", equal, test.equal, cmp.Diff(before, after))
			}
		})
	}
	if _, err := Identify(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("a kubelet that is not there has an identity")
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestLocalContent(t *testing.T) {
	file, other := written(t, "k.yaml", "maxPods: 1"), written(t, "k.yaml", "maxPods: 2")
	content := func(argv ...string) string { return LocalContent(argv) }
	if got := content("--v=2"); got != "sha256:none" {
		t.Errorf("without --config: %s", got)
	}
	// what sha256sum prints for the file
	if got, want := content("--config="+file), "sha256:91233c81e1c268795a339c8a2883b8c3e0446f79e187fc92fe83217c7406b4e5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if content("--config", file) == content("--config", file, "--config", other) {
		t.Error("two files have the same content")
	}
	seen := map[string]string{content("--config=" + file): file}
	for _, path := range []string{file + ".none", "/dev/zero", filepath.Dir(file), written(t, "k.yaml", strings.Repeat("#", maxFile+1))} {
		got := content("--config=" + path)
		if seen[got] != "" || got != content("--config="+path) {
			t.Errorf("%s has content %s, as %s", path, got, seen[got])
		}
		seen[got] = path
	}
}

func TestLocalGates(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		want     map[string]bool
	}{
		"some":         {header + "featureGates: {A: true, B: false}", map[string]bool{"A": true, "B": false}},
		"none":         {header, nil},
		"mistyped":     {header + "featureGates: {A: yes please, B: true}", map[string]bool{"B": true}},
		"another type": {header + "featureGates: [A]", nil},
		"broken":       {"[", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, LocalGates([]string{"--config=" + written(t, "k.yaml", test.document)})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if gates := LocalGates(nil); gates != nil {
		t.Errorf("without a file: %v", gates)
	}
}
