//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A process as /proc shows it.
type process struct {
	ID        int
	Arguments []string // argv, the program first
}

// kubelets are the processes that run as this node's kubelet now, whoever started them; a pre-flight is none.
func (n *node) kubelets(t *testing.T) []process {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	ours := "--root-dir=" + filepath.Join(n.Folder, "kubelet")
	var found []process
	for _, file := range files {
		content, _ := os.ReadFile(file) // gone meanwhile, or a zombie: empty
		argv := strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
		own, preflight := slices.Contains(argv, ours), slices.Contains(argv, "--exit-on-lock-contention=true")
		if !own || preflight || !strings.Contains(filepath.Base(argv[0]), "kubelet") || slices.Contains(argv, "--") {
			continue // the supervisor has the kubelet's arguments too, behind --
		}
		if id, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil {
			found = append(found, process{ID: id, Arguments: argv})
		}
	}
	return found
}
