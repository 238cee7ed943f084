package kubeletconfig

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Layers of another version, and what is no layers, are not read: nobody knows what they mean.
func TestLayersOfAnotherVersion(t *testing.T) {
	const layers = "\nlayers: [{name: a, patch: {maxPods: 1}}]\n"
	for begin, want := range map[string]bool{
		"kind: KubeletConfigurationLayers\napiVersion: " + LayersAPIVersion:      true,
		"kind: KubeletConfigurationLayers\napiVersion: kubelet-supervisor.io/v9": false,
		"kind: KubeletConfigurationLayers":                                       false,
		"kind: KubeletConfiguration\napiVersion: " + LayersAPIVersion:            false,
	} {
		read, err := ReadLayers([]byte(begin + layers))
		if want && (err != nil || len(read.Layers) != 1) || !want && (err == nil || !strings.Contains(err.Error(), "is no KubeletConfigurationLayers of ")) {
			t.Errorf("%q: %+v, %v", begin, read, err)
		}
	}
}

// With a drop-in file that cannot be read the node is another than with one that is empty, or not there.
func TestTheIdentityOfADropInThatCannotBeRead(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "10-a.conf")
	seen := map[Identity]string{}
	for _, row := range []struct {
		name    string
		prepare func() error
	}{
		{"absent", func() error { return nil }},
		{"empty", func() error { return os.WriteFile(path, nil, 0o600) }},
		{"unreadable", func() error { return errors.Join(os.Remove(path), os.Symlink(path, path)) }},
	} {
		if err := row.prepare(); err != nil {
			t.Fatal(err)
		}
		identity, err := Identify("/proc/self/exe", []string{"--config-dir=" + folder})
		if other, twice := seen[identity]; twice || err != nil {
			t.Errorf("one that is %s is taken for one that is %s (%v)", row.name, other, err)
		}
		seen[identity] = row.name
	}
}

func TestReadsByte(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"empty": "", "full": "x"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"empty": true, "full": true, "absent": false, ".": false} {
		if err := readsByte(filepath.Join(folder, name)); err == nil != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNameServers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("# nameserver 1.1.1.1\nnameserver\nsearch a\n nameserver 10.0.0.1 10.0.0.2\nnameserver\t::1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := nameServers(path); !slices.Equal(got, []string{"10.0.0.1", "::1"}) {
		t.Errorf("%q", got)
	}
	if got := nameServers(path + ".absent"); got != nil {
		t.Errorf("of none %q", got)
	}
}
