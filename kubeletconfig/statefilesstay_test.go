package kubeletconfig

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStateFilesStay(t *testing.T) {
	told := func(tree map[string]any) Effective { return newEffective(tree, map[string]any{}) }
	plain, static := map[string]any{"cpuManagerPolicy": "none", "memoryManagerPolicy": "None"}, map[string]any{"cpuManagerPolicy": "static"}
	reserved := map[string]any{"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
	for name, test := range map[string]struct {
		now, then   Effective
		cpu, memory string // the files; empty = there is none
		want        bool
	}{
		"the defaults":                    {told(plain), told(map[string]any{}), `{"policyName":"none"}`, `{"policyName":"None"}`, true},
		"no files yet":                    {told(plain), told(plain), "", "", true},
		"something else changes":          {told(plain), told(map[string]any{"maxPods": 20, "kubeReserved": map[string]any{"cpu": "1"}}), "", "", true},
		"by our own reading":              {told(plain), newEffective(plain, nil), "", "", false},
		"nothing is known of what runs":   {Effective{}, told(plain), "", "", false},
		"another policy":                  {told(plain), told(static), `{"policyName":"none"}`, "", false},
		"another policy, of memory":       {told(plain), told(map[string]any{"memoryManagerPolicy": "Static"}), "", "", false},
		"another policy, and no file yet": {told(plain), told(static), "", "", false},
		"the file is of another policy":   {told(plain), told(plain), `{"policyName":"static"}`, "", false},
		"a file that cannot be read":      {told(plain), told(plain), "", "no JSON", false},
		"static, and nothing else":        {told(static), told(map[string]any{"cpuManagerPolicy": "static", "maxPods": 20}), `{"policyName":"static"}`, "", true},
		"static, and other reservations":  {told(static), told(reserved), `{"policyName":"static"}`, "", false},
		"static, and other gates":         {told(static), told(map[string]any{"cpuManagerPolicy": "static", "featureGates": map[string]any{"X": true}}), `{"policyName":"static"}`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, content := range map[string]string{cpuStateFile: test.cpu, memoryStateFile: test.memory} {
				if content == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(root, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := StateFilesStay([]string{"--root-dir=" + root}, test.now, test.then); got != test.want {
				t.Errorf("%t", got)
			}
		})
	}
}

func TestNamesFlag(t *testing.T) {
	for line, want := range map[string]bool{"--lock-file=x": true, "--lock_file": true, "--lock": false, "--lock-filex=1": false, "lock-file": false} {
		if got := commandline.NamesFlag([]string{"--v=2", line}, "exit-on-lock-contention", "lock-file"); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
	if commandline.NamesFlag([]string{"--", "--lock-file=x"}, "lock-file") {
		t.Error("behind -- is no flag")
	}
}
