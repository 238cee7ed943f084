package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page has the script that is shipped, but for its comment.
func TestArgoScriptIsTheShippedOne(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "deploy/argocd/kubeletpool-health.lua"))
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for line := range strings.Lines(string(script)) {
		if !strings.HasPrefix(line, "--") {
			shown.WriteString("    " + line)
		}
	}
	if !strings.Contains(pages(t)["docs/howto/gitops.md"], shown.String()) {
		t.Error("docs/howto/gitops.md has another script than deploy/argocd/kubeletpool-health.lua")
	}
}
