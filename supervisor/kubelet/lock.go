//go:build linux

package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A kubelet that is started with --lock-file holds that file by flock(2) from before it touches anything of the node until its end. So the
// next one with the same file waits, and it is the kernel, not a supervisor that may be killed, that lets one through after the other.

const lockFlag = "--lock-file="

// A heldLock is a lock as the kernel's table has it.
type heldLock struct {
	id   string // device and inode, as /proc/locks has them; a file system may have others for stat(2)
	file string // the holder's open file
}

// lockOf finds the lock that the process holds on a file of that name; false = none.
func lockOf(pid int, name string) (heldLock, bool) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	files, err := os.ReadDir(proc + "/fd")
	if err != nil {
		return heldLock{}, false
	}
	for _, file := range files {
		path := filepath.Join(proc, "fd", file.Name())
		if filepath.Base(linked(path)) != name {
			continue
		}
		info, _ := os.ReadFile(filepath.Join(proc, "fdinfo", file.Name()))
		if id := heldIn(string(info)); id != "" {
			return heldLock{id: id, file: path}, true
		}
	}
	return heldLock{}, false
}

// heldIn finds the lock in the fdinfo of an open file; "" = none.
func heldIn(info string) (id string) {
	for line := range strings.Lines(info) {
		// lock:	1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF
		if fields := strings.Fields(line); len(fields) > 6 && fields[0] == "lock:" && fields[2] == "FLOCK" {
			return fields[6]
		}
	}
	return ""
}

// isAt reports whether the lock is on the file that is at the path now, and not on one that was removed.
func (h heldLock) isAt(path string) bool { return sameFile(h.file, path) }

// hasWaiter reports whether the process waits for the lock (proc_locks(5)).
func (h heldLock) hasWaiter(pid int) bool {
	table, _ := os.ReadFile("/proc/locks")
	return h.waitedFor(string(table), pid)
}

func (h heldLock) waitedFor(table string, pid int) bool {
	for line := range strings.Lines(table) {
		// 1: -> FLOCK  ADVISORY  WRITE 4712 08:01:1234 0 EOF
		fields := strings.Fields(line)
		if len(fields) > 6 && fields[1] == "->" && fields[2] == "FLOCK" && fields[5] == strconv.Itoa(pid) && fields[6] == h.id {
			return true
		}
	}
	return false
}

// comesBeforeItsLock reports whether a kubelet that was started with this lock file waits for the lock, or is on its way there. It
// has touched nothing of the node.
func comesBeforeItsLock(pid int, path string) bool {
	if path == "" || !slices.Contains(zeroSeparated(fmt.Sprintf("/proc/%d/cmdline", pid)), lockFlag+path) {
		return false
	}
	_, holds := lockOf(pid, filepath.Base(path))
	return !holds
}

// lockFailed is what a kubelet says that may not have the file (cmd/kubelet/app/server.go), for a policy of the host forbids it.
const lockFailed = "unable to acquire file lock"

// lockable reports whether a kubelet that is started now may be given the lock file: it is the kubelet itself, the file can be opened, and
// no process holds the lock indefinitely.
func (l *Launcher) lockable() bool {
	return !l.cannotLock.Load() && isELF(l.Path) && l.lock.look(func() bool { return isFree(l.LockFile) })
}

// isFree reports whether the file can be opened, and is not held.
func isFree(path string) bool {
	fd, err := openLock(path)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil
}

// openLock opens the file as a kubelet does. Before Linux 6.12 that waits for a frozen file system.
func openLock(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return -1, err
	}
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil || info.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = unix.Close(fd)
		return -1, unix.EINVAL
	}
	return fd, nil
}

// canOpen reports whether the file can be opened, whatever process holds it.
func canOpen(path string) bool {
	fd, err := openLock(path)
	return err == nil && unix.Close(fd) == nil
}

// lockTime is how long the disk may take to open the lock file. No kubelet waits longer for a disk that hangs: it starts without.
const lockTime = time.Second

// lockLooker looks at the lock file without waiting for a disk that hangs.
type lockLooker struct{ waits atomic.Bool }

// look gives what free tells; false where it has no answer in time, or still waits for the one before. Its goroutine ends with the disk's
// answer, so nothing waits for it.
func (l *lockLooker) look(free func() bool) bool {
	if !l.waits.CompareAndSwap(false, true) {
		return false
	}
	answer := make(chan bool, 1)
	go func() {
		defer l.waits.Store(false)
		answer <- free()
	}()
	select {
	case is := <-answer:
		return is
	case <-time.After(lockTime):
		return false
	}
}
