package v1alpha1

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The deep copies and the CustomResourceDefinition are what controller-gen makes of the types. `make manifests` makes them anew.
func TestGeneratedFilesAreUpToDate(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	generate(t, root, folder)
	for made, kept := range map[string]string{
		"zz_generated.deepcopy.go": "api/pool/v1alpha1/zz_generated.deepcopy.go",
		"crd.yaml":                 "deploy/manifests/controller/crd.yaml",
	} {
		want, err := os.ReadFile(filepath.Join(folder, made))
		if err != nil {
			t.Fatal(err)
		}
		kept = filepath.Join(root, kept)
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(kept, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(kept); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what controller-gen makes of the types (%v): make manifests", kept, err)
		}
	}
}

// generate runs the controller-gen that test/tools/controller-gen pins. It has to run in our module to see the types, and to be built in its
// own, whose dependencies are none of ours.
func generate(t *testing.T, root, folder string) {
	t.Helper()
	where := exec.Command("go", "tool", "-C", filepath.Join(root, "test/tools/controller-gen"), "-n", "controller-gen")
	where.Env = append(os.Environ(), "GOWORK=off") // its module is not one of go.work
	where.Stderr = os.Stderr
	path, err := where.Output()
	if err != nil {
		t.Fatalf("controller-gen cannot be built: %v", err)
	}
	run := exec.Command(strings.TrimSpace(string(path)), "object", "crd:maxDescLen=512", "paths=./api/pool/v1alpha1", "output:crd:stdout",
		"output:object:dir="+folder)
	run.Dir = root
	var said bytes.Buffer
	run.Stderr = &said
	crd, err := run.Output()
	if err != nil {
		t.Fatalf("controller-gen: %v\n%s", err, said.Bytes())
	}
	if err := os.WriteFile(filepath.Join(folder, "crd.yaml"), crd, 0o600); err != nil {
		t.Fatal(err)
	}
}
