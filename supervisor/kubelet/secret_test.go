//go:build linux

package kubelet

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A secret is kept, and given to no program that could not read it. One that others may know is replaced.
func TestSecret(t *testing.T) {
	first := keptSecret(t, t.TempDir(), "")
	for name, test := range map[string]struct {
		spoil func(path string) error
		known string
		same  bool
	}{
		"it is kept":                          {func(string) error { return nil }, "", true},
		"it is lost, and known":               {os.Remove, first, true},
		"it is lost, and not known":           {os.Remove, "", false},
		"others may read it":                  {func(path string) error { return os.Chmod(path, 0o644) }, "", false},
		"others may read it, it is known":     {func(path string) error { return os.Chmod(path, 0o644) }, first, true},
		"it is empty":                         {func(path string) error { return os.Truncate(path, 0) }, "", false},
		"it is another's word":                {func(path string) error { return os.WriteFile(path, []byte("secret"), 0o600) }, "", false},
		"another is in its place":             {func(path string) error { return os.WriteFile(path, []byte(otherSecret), 0o600) }, first, true},
		"another is in its place, none known": {func(path string) error { return os.WriteFile(path, []byte(otherSecret), 0o600) }, "", false},
		"it is there, and known":              {func(string) error { return nil }, first, true},
		"it is another user's": {func(path string) error {
			if os.Geteuid() != 0 {
				return os.Remove(path)
			}
			return os.Chown(path, 65534, 65534)
		}, "", false},
		"it is a FIFO": {func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return syscall.Mkfifo(path, 0o600)
		}, "", false},
		"it is a link": {func(path string) error {
			if err := os.Rename(path, path+".elsewhere"); err != nil {
				return err
			}
			return os.Symlink(path+".elsewhere", path)
		}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			runDir := t.TempDir()
			write(t, filepath.Join(runDir, secretFile), first)
			if err := os.Chmod(filepath.Join(runDir, secretFile), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := test.spoil(filepath.Join(runDir, secretFile)); err != nil {
				t.Fatal(err)
			}
			got := keptSecret(t, runDir, test.known)
			if (got == first) != test.same {
				t.Errorf("it is %q, and was %q", got, first)
			}
			if read := readSecret(runDir); read != got {
				t.Errorf("read is %q, want %q", read, got)
			}
		})
	}
}

func keptSecret(t *testing.T, runDir, known string) string {
	t.Helper()
	secret, err := keepSecret(runDir, known)
	if err != nil || !secretForm.MatchString(secret) {
		t.Fatalf("the secret is %q, %v", secret, err)
	}
	return secret
}

// One that is known goes on to be given where it cannot be written: kubelets that have it are looked for by it.
func TestASecretThatCannotBeWritten(t *testing.T) {
	runDir := filepath.Join(t.TempDir(), "removed")
	if got, err := keepSecret(runDir, "KNOWN"); got != "KNOWN" || err == nil || !strings.Contains(err.Error(), "making the secret") {
		t.Errorf("one that is known is %q, %v", got, err)
	}
	if got, err := keepSecret(runDir, ""); got != "" || err == nil {
		t.Errorf("a new one is %q, %v", got, err)
	}
}
