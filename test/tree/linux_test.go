package tree

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// onLinux are the folders with code for Linux alone: the node's program below supervisor, and programs that start real parts.
var onLinux = []string{"cmd/kubelet-supervisor", "internal/umask", "store", "supervisor", "supervisor/cli", "supervisor/cli/signals", "supervisor/host",
	"supervisor/kubelet", "supervisor/metrics",
	"test/bench", "test/cluster", "test/cluster/cmd/cluster", "test/demo", "test/fakekubelet", "test/machine/agent", "test/mutate", "test/scale", "test/scale/pools",
	"test/scale/scalehost", "test/soak", "test/soakpools", "test/watch", "test/watch/dashboard"}

// Without the constraint "go vet ./..." fails on macOS and Windows, by names that are not defined. doc.go has none, so that the package is visible.
func TestWhatIsForLinuxAloneSaysSo(t *testing.T) {
	found := 0
	for file, text := range Files(t, ".go") {
		if !slices.Contains(onLinux, path.Dir(file)) || path.Base(file) == "doc.go" || strings.Contains(file, "_linux") {
			continue
		}
		found++
		if !strings.HasPrefix(text, "//go:build ") {
			t.Errorf("%s does not begin with //go:build linux", file)
		}
	}
	if found == 0 {
		t.Error("no file was looked at")
	}
}
