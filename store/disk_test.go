//go:build linux

package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A process that is short of something sets no good state aside: only what a file itself is to blame for is a defect.
func TestWhoseFaultAReadIs(t *testing.T) {
	for _, passing := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR} {
		wrapped := &os.PathError{Op: "open", Path: "x", Err: passing}
		if found := (*defect)(nil); errors.As(unreadable("x", wrapped), &found) {
			t.Errorf("%v is taken for a defect of the file", passing)
		}
	}
	for _, lasting := range []error{syscall.EIO, syscall.EACCES, syscall.ELOOP, errors.New("longer than the limit")} {
		if found := (*defect)(nil); !errors.As(unreadable("x", lasting), &found) {
			t.Errorf("%v is not taken for a defect of the file", lasting)
		}
	}
}

// unsyncable is the folder of the process of TestNothingIsDurableUnlessItIsSynced in which no fsync succeeds.
const unsyncable = "KUBELET_SUPERVISOR_TEST_UNSYNCABLE"

// Each byte and each name is durable before the disk says so: in a process to which the kernel answers every fsync with an error, neither a file
// nor a folder is made durable, and a change of the store fails. The power cuts of the other tests have a disk of their own.
func TestNothingIsDurableUnlessItIsSynced(t *testing.T) {
	if dir := os.Getenv(unsyncable); dir != "" {
		withoutFsync(t, dir)
		return
	}
	command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), unsyncable+"="+t.TempDir())
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func withoutFsync(t *testing.T, dir string) {
	s := open(t, dir)
	must(t, s.SaveSource(Assigned, source("1")))
	must(t, os.WriteFile(metaPath(s, LastKnownGood), []byte("{"), 0o600))
	refuseFsync(t)
	disk := s.disk.(*osDisk)
	for what, err := range map[string]error{
		"a file":       disk.create(filepath.Join(dir, "file"), []byte("x")),
		"a folder":     disk.sync(dir),
		"a pointer":    s.SaveSource(Assigned, source("2")),
		"a checkpoint": s.SaveCheckpoint(*source("2"), map[string]string{"kubelet": "x"}),
	} {
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("%s that is not synced: %v", what, err)
		}
	}
	_, err := s.LoadSource(LastKnownGood)
	wantError(t, err, "could not be set aside")
	_, err = Open(filepath.Join(dir, "new"))
	if wantError(t, err, "creating the state folder: "); !errors.Is(err, syscall.EIO) {
		t.Errorf("a new state folder: %v", err)
	}
	if now, err := s.LoadSource(Assigned); err != nil || now == nil || now.ResourceVersion != "1" {
		t.Errorf("after a change that failed, assigned is %v, %v", now, err)
	}
}

// refuseFsync lets every fsync of this process fail from now on.
func refuseFsync(t *testing.T) {
	t.Helper()
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	give := func(what uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what} }
	skipUnless := func(call uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1}
	}
	filter := []unix.SockFilter{load(0), skipUnless(unix.SYS_FSYNC), give(unix.SECCOMP_RET_ERRNO | uint32(unix.EIO)),
		skipUnless(unix.SYS_FDATASYNC), give(unix.SECCOMP_RET_ERRNO | uint32(unix.EIO)), give(unix.SECCOMP_RET_ALLOW)}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	must(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	_, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if failed != 0 {
		t.Fatal(fmt.Errorf("asking the kernel to refuse fsync: %w", failed))
	}
}
