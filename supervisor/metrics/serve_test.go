//go:build linux

package metrics

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The socket is for the supervisor's user and group from its first moment on, whatever the umask is. Nothing is changed by its name afterwards,
// which the owner of the folder may have made a link by then.
func TestTheModeOfTheSocket(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "metrics.sock")
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, folder, unix.IN_ATTRIB); err != nil {
		t.Fatal(err)
	}
	listener, err := listen(t.Context(), unixPrefix+path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != os.ModeSocket|0o660 {
		t.Errorf("it has mode %v (%v)", info.Mode(), err)
	}
	if n, err := unix.Read(watch, make([]byte, 4096)); err != unix.EAGAIN {
		t.Errorf("its permissions were changed after it was there (%d bytes of events, %v)", n, err)
	}
}
