package docs

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/tree"
)

// mostTargets is how many targets `make` lists, and widest how long a line of `make help-all` is.
const mostTargets, widest = 26, 140

var (
	listed = regexp.MustCompile(`(?m)^([a-z0-9-]+):.*?##(\+?) (.*)$`)
	named  = regexp.MustCompile("`make ([a-z][a-z0-9 -]*)[A-Z`]|\\bmake ((?:test|bench|soak)-[a-z0-9-]+)")
)

func TestMakefile(t *testing.T) {
	targets, everyday := map[string]bool{}, 0
	for _, text := range makefiles(t) {
		for _, target := range listed.FindAllStringSubmatch(text, -1) {
			name, rare, help := target[1], target[2] != "", target[3]
			targets[name] = true
			if !rare {
				everyday++
			}
			if width := len("  make ") + max(len(name), 18) + 1 + utf8.RuneCountInString(help); width > widest {
				t.Errorf("make help-all says %d characters about %s, more than %d", width, name, widest)
			}
		}
	}
	if everyday == 0 || everyday > mostTargets {
		t.Errorf("make lists %d targets, want at most %d: list a rare one in make help-all, by ##+", everyday, mostTargets)
	}
	for path, text := range tree.Files(t, ".md", ".go", ".sh", ".tmpl", ".yaml", ".yml") {
		for _, make := range named.FindAllStringSubmatch(text, -1) {
			for _, name := range strings.Fields(make[1] + make[2]) {
				if !targets[name] {
					t.Errorf("%s names make %s, which make help-all does not list", path, name)
				}
			}
		}
	}
}

func makefiles(t *testing.T) map[string]string {
	found := tree.Files(t, ".mk")
	for path, text := range tree.Files(t, "Makefile") {
		found[path] = text
	}
	return found
}
