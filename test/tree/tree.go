// Package tree reads the files of this repository, for tests about the code itself.
package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Root is the folder of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Files gives the content of every file with one of these endings, by its path from the root. What is built is not part of it.
func Files(t testing.TB, endings ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(Root()), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == ".git" || path == "bin" || path == "dist"):
			return fs.SkipDir
		case entry.IsDir() || !has(path, endings):
			return nil
		}
		content, err := os.ReadFile(filepath.Join(Root(), path))
		found[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Programs gives the Go files of the three programs, without tests.
func Programs(t testing.TB) map[string]string {
	t.Helper()
	found := Files(t, ".go")
	for path := range found {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "test/") || strings.HasPrefix(path, "packaging/") && strings.Count(path, "/") > 1 {
			delete(found, path)
		}
	}
	return found
}

func has(path string, endings []string) bool {
	for _, ending := range endings {
		if strings.HasSuffix(path, ending) {
			return true
		}
	}
	return false
}
