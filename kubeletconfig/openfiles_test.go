package kubeletconfig

import (
	"path/filepath"
	"testing"
)

func TestMaxOpenFiles(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want int64
	}{
		"the file says it":         {written(t, "said.yaml", "maxOpenFiles: 20\n"), 20},
		"the kubelet's own":        {written(t, "silent.yaml", "maxPods: 20\n"), 1_000_000},
		"not a number":             {written(t, "wrong.yaml", "maxOpenFiles: many\n"), 1_000_000},
		"no file":                  {"", 1_000_000},
		"one that cannot be read":  {filepath.Join(t.TempDir(), "none"), 1_000_000},
		"one that is no YAML file": {written(t, "broken.yaml", "\t: no"), 1_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MaxOpenFiles(nil, test.file); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}
