// Package docs checks the pages that people read: README.md and all of docs/.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// pages gives the text of every page, by its path from the root of the tree.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	read := func(path string) error {
		content, err := os.ReadFile(filepath.Join(root, path))
		found[path] = string(content)
		return err
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"} {
		if err := read(name); err != nil {
			t.Fatal(err)
		}
	}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		return read(path)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// prose gives the lines of a page that are not in a fence, with their numbers.
func prose(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		fence, number := false, 0
		for line := range strings.Lines(text) {
			number++
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fence = !fence
				continue
			}
			if !fence && !yield(number, strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	}
}
