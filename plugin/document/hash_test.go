package document

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/internal/plugintest"
)

// The names are those that kubectl 1.36.3 was seen to give.
func TestHashedName(t *testing.T) {
	for _, test := range hashCases {
		t.Run(test.describes, func(t *testing.T) {
			got, err := HashedName(test.name, test.data, test.binaryData)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

var hashCases = []struct {
	describes, name string
	data            map[string]string
	binaryData      map[string][]byte
	want            string
}{
	{"one key", "my-config", map[string]string{"kubelet": "a: 1\n"}, nil, "my-config-d5bf27f224"},
	{"the order of keys is nothing", "c", map[string]string{"z": "1", "a": "2", "kubelet": "x"}, nil, "c-b47m8cb7gg"},
	{"what JSON escapes", "c", map[string]string{"kubelet": "<&>\u2028\"\\\t"}, nil, "c-2842d6th54"},
	{"bytes that are no text", "c", map[string]string{"kubelet": "x"}, map[string][]byte{"certificate": {0xff, 0xfe, 0}}, "c-7bgc8687bh"},
}

// The same by the real kubectl, where it is built.
func TestHashedNameIsKubectls(t *testing.T) {
	kubectl := filepath.Join(os.Getenv("KUBELET_SUPERVISOR_PARTS"), "kubectl-1.36.3")
	if _, err := os.Stat(kubectl); err != nil {
		t.Skip("KUBELET_SUPERVISOR_PARTS has no kubectl-1.36.3")
	}
	for _, test := range hashCases {
		t.Run(test.describes, func(t *testing.T) {
			folder := t.TempDir()
			for key, value := range test.data {
				plugintest.WriteFile(t, filepath.Join(folder, key), value)
			}
			for key, value := range test.binaryData {
				plugintest.WriteFile(t, filepath.Join(folder, key), string(value))
			}
			output, err := exec.CommandContext(t.Context(), kubectl, "create", "configmap", test.name, "--from-file="+folder,
				"--append-hash", "--dry-run=client", "-o=name").CombinedOutput()
			if want := "configmap/" + test.want; err != nil || strings.TrimSpace(string(output)) != want {
				t.Errorf("kubectl says %s, %v; want %s", output, err, want)
			}
		})
	}
}
