package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/tree"
)

// Builds set GOWORK=off, so only an editor would notice a workspace that the Go of go.mod does not read.
func TestWorkspace(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}")
	list.Dir = tree.Root()
	list.Env = append(os.Environ(), "GOWORK="+filepath.Join(tree.Root(), "go.work"))
	output, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("go list -m: %v\n%s", err, output)
	}
	modules := strings.Fields(string(output))
	for path, text := range tree.Files(t, "go.mod") {
		folder := filepath.Join(tree.Root(), filepath.Dir(path))
		programs, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if folder != tree.Root() && len(programs) == 0 || strings.Contains(text, "=>") {
			continue // it pins tools, or is built with versions of its own, and nothing in it is tested by itself
		}
		if !slices.Contains(modules, folder) {
			t.Errorf("go.work does not have %s, which has code", path)
		}
	}
}
