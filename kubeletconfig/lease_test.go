package kubeletconfig

import (
	"path/filepath"
	"testing"
	"time"
)

func TestLeaseDuration(t *testing.T) {
	for name, test := range map[string]struct {
		file, dropIn string
		want         time.Duration
	}{
		"nothing":                   {"healthzPort: 1", "", 0},
		"the file":                  {"nodeLeaseDurationSeconds: 300", "", 5 * time.Minute},
		"a drop-in beats the file":  {"nodeLeaseDurationSeconds: 300", "nodeLeaseDurationSeconds: 400", 400 * time.Second},
		"a drop-in's null deletes":  {"nodeLeaseDurationSeconds: 300", "nodeLeaseDurationSeconds: null", 0},
		"wrong types are as absent": {`nodeLeaseDurationSeconds: "300"`, "", 0},
		"no whole number":           {"nodeLeaseDurationSeconds: 1.5", "", 0},
		"negative":                  {"nodeLeaseDurationSeconds: -1", "", 0},
		"huge":                      {"nodeLeaseDurationSeconds: 2147483647", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if test.dropIn != "" {
				write(t, filepath.Join(folder, "a.conf"), test.dropIn)
			}
			if got := LeaseDuration([]string{"--config-dir=" + folder}, written(t, "kubelet.yaml", test.file)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
