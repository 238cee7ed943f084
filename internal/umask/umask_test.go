//go:build linux

package umask_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/umask"
)

var errWanted = errors.New("wanted")

// What is made under a umask has the permissions that this leaves from its first moment on; what others make meanwhile has their own.
func TestOnlyWhatIsDoneUnderTheUmask(t *testing.T) {
	folder := t.TempDir()
	mode := func(name string) os.FileMode {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	make := func(name string) error { return os.WriteFile(filepath.Join(folder, name), nil, 0o666) }
	if err := make("before"); err != nil {
		t.Fatal(err)
	}
	err := umask.With(0o117, func() error {
		var others sync.WaitGroup
		others.Go(func() {
			if err := make("meanwhile"); err != nil {
				t.Error(err)
			}
		})
		others.Wait()
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(folder, "socket"), Net: "unix"})
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = listener.Close() })
		return errors.Join(make("under"), errWanted)
	})
	if !errors.Is(err, errWanted) {
		t.Errorf("the error is %v", err)
	}
	if err := make("after"); err != nil {
		t.Fatal(err)
	}
	if mode("socket") != 0o660 || mode("under") != 0o660 {
		t.Errorf("under the umask: socket %v, file %v", mode("socket"), mode("under"))
	}
	if mode("meanwhile") != mode("before") || mode("after") != mode("before") {
		t.Errorf("others have made %v, %v, %v", mode("before"), mode("meanwhile"), mode("after"))
	}
}
