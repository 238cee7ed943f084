//go:build linux

package store

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestOpenFolder(t *testing.T) {
	for _, row := range []struct {
		name    string
		prepare func(t *testing.T, dir string) // dir does not exist yet
		refused string                         // "" = opens
	}{
		{"absent", nil, ""},
		{"present", func(t *testing.T, dir string) { must(t, os.Mkdir(dir, 0o700)) }, ""},
		{"below a file", func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Dir(dir)))
			must(t, os.WriteFile(filepath.Dir(dir), nil, 0o600))
		}, "creating the state folder: "},
		{"readable by others", func(t *testing.T, dir string) { must(t, os.Mkdir(dir, 0o755)) }, ""},
		{"writable by others", func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Chmod(dir, 0o770))
		}, "others can write to the state folder"},
		{"a file", func(t *testing.T, dir string) { must(t, os.WriteFile(dir, nil, 0o600)) }, "not a directory"},
		{"a link to a folder", func(t *testing.T, dir string) { must(t, os.Symlink(t.TempDir(), dir)) }, "not a link"},
		{"a link to nothing", func(t *testing.T, dir string) { must(t, os.Symlink(dir+"-gone", dir)) }, "not a link"},
		{"somebody else's", func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir, 0o700))
			giveAway(t, dir)
		}, "belongs to user 65534, not to 0; chown it"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if row.prepare != nil {
				row.prepare(t, dir)
			}
			for _, written := range []string{dir, dir + "/", dir + "/."} {
				s, err := Open(written)
				wantError(t, err, row.refused)
				if err == nil {
					must(t, s.Close())
				}
			}
		})
	}
}

func TestOpenRefusesFoldersThatDependOnTheWorkingDirectory(t *testing.T) {
	for _, dir := range []string{"", ".", "state", "./state", "../state"} {
		_, err := Open(dir)
		wantError(t, err, "is not an absolute path")
	}
}

func TestOpenCreatesPrivateFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lib", "kubelet-supervisor")
	s := open(t, dir+"//")
	must(t, s.SaveSource(Assigned, source("1")))
	must(t, s.SaveCheckpoint(*source("1"), map[string]string{"kubelet": "x"}))
	for path, want := range map[string]os.FileMode{
		dir:                                           os.ModeDir | 0o700,
		filepath.Join(dir, "meta"):                    os.ModeDir | 0o700,
		filepath.Join(dir, "meta", "assigned"):        0o600,
		filepath.Join(dir, "checkpoints", "uid"):      os.ModeDir | 0o700,
		filepath.Join(dir, "checkpoints", "uid", "1"): os.ModeDir | 0o700,
		filepath.Join(dir, "checkpoints", "uid", "1", "kubelet"): 0o600,
		filepath.Join(dir, "checkpoints", "uid", "1.sha256"):     0o600,
	} {
		info, err := os.Lstat(path)
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%s: mode %v, want %v", path, info.Mode(), want)
		}
	}
}

func TestOneOpener(t *testing.T) {
	t.Run("in this process", func(t *testing.T) {
		dir := t.TempDir()
		first := open(t, dir)
		_, err := Open(dir)
		if want := fmt.Sprintf("%s (pid %d)", dir, os.Getpid()); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), want) {
			t.Fatalf("second Open: %v, want ErrHeld and %s", err, want)
		}
		must(t, first.Close())
		open(t, dir)
	})
	t.Run("in another process, until it dies", func(t *testing.T) {
		dir := t.TempDir()
		holder := startHolder(t, dir)
		_, err := Open(dir)
		if want := fmt.Sprintf("%s (pid %d)", dir, holder.Process.Pid); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), want) {
			t.Fatalf("Open while another process holds it: %v, want ErrHeld and %s", err, want)
		}
		must(t, holder.Process.Kill())
		_ = holder.Wait()
		open(t, dir)
	})
}

// startHolder runs this test binary as a process that opens dir and waits.
func startHolder(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	holder := exec.Command(os.Args[0], "-test.run=^TestHolder$")
	holder.Env = append(os.Environ(), "STORE_TEST_HOLD="+dir)
	_, err := holder.StdinPipe()
	must(t, err)
	stdout, err := holder.StdoutPipe()
	must(t, err)
	must(t, holder.Start())
	t.Cleanup(func() { _ = holder.Process.Kill() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "held\n" {
		t.Fatalf("the holder said %q: %v", line, err)
	}
	return holder
}

func TestHolder(t *testing.T) {
	dir := os.Getenv("STORE_TEST_HOLD")
	if dir == "" {
		t.Skip("only for startHolder")
	}
	open(t, dir)
	fmt.Println("held")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent ends
}

func TestChildrenDoNotInheritTheLock(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	child := exec.Command("cat")
	stdin, err := child.StdinPipe()
	must(t, err)
	must(t, child.Start())
	defer func() { must(t, stdin.Close()); must(t, child.Wait()) }()
	folder := fmt.Sprintf("/proc/%d/fd", child.Process.Pid)
	entries, err := os.ReadDir(folder)
	must(t, err)
	if len(entries) < 3 {
		t.Fatalf("%s has %d entries, want at least the three standard ones", folder, len(entries))
	}
	for _, entry := range entries {
		if target, _ := os.Readlink(filepath.Join(folder, entry.Name())); target == dir {
			t.Errorf("descriptor %s of the child is the state folder", entry.Name())
		}
	}
}

func TestStateFolderReplacedWhileInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir)
	must(t, os.Rename(dir, dir+"-old"))
	wantError(t, s.SaveSource(Assigned, source("1")), "was removed or replaced while in use")
	must(t, os.Mkdir(dir, 0o700))
	wantError(t, s.SaveSource(Assigned, source("1")), "was removed or replaced while in use")
	_, err := s.LoadSource(Assigned)
	wantError(t, err, "was removed or replaced while in use")
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("something was written into a folder that is not locked: %v", entries)
	}
}

// A read-only file system needs a mount namespace of its own, hence a process of its own.
func TestReadOnlyFileSystem(t *testing.T) {
	dir := os.Getenv("STORE_TEST_MOUNT")
	if dir == "" {
		runOnReadOnlyFileSystem(t)
		return
	}
	must(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	must(t, syscall.Mount(dir, dir, "", syscall.MS_BIND, ""))
	must(t, syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))

	s := open(t, dir)
	loaded, err := s.LoadSource(Assigned)
	must(t, err)
	wantSource(t, loaded, source("1"))
	payload, err := s.LoadCheckpoint(*source("1"))
	must(t, err)
	wantPayload(t, payload, map[string]string{"kubelet": "x"})
	_, err = s.LoadSource(LastKnownGood)
	wantError(t, err, "does not decode")
	wantError(t, err, "could not be set aside")
	for name, err := range map[string]error{
		"SaveSource":     s.SaveSource(Assigned, nil),
		"SaveDocument":   s.SaveDocument("trial", "Trial", struct{}{}),
		"SaveCheckpoint": s.SaveCheckpoint(*source("2"), nil),
		"Collect":        s.Collect(nil),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v, want a read-only file system", name, err)
		}
	}
	if err := s.Collect([]corev1.ConfigMapNodeConfigSource{*source("1")}); err != nil {
		t.Errorf("Collect with nothing to remove: %v", err)
	}
}

func runOnReadOnlyFileSystem(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	must(t, s.SaveSource(Assigned, source("1")))
	must(t, s.SaveCheckpoint(*source("1"), map[string]string{"kubelet": "x"}))
	must(t, os.WriteFile(filepath.Join(dir, "meta", "last-known-good"), []byte("{"), 0o600))
	must(t, s.Close())
	inMountNamespace(t, dir)
}

// inMountNamespace runs the test once more in a process that may mount, with the name of the folder to mount at.
func inMountNamespace(t *testing.T, dir string) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), "STORE_TEST_MOUNT="+dir)
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	output, err := child.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Skipf("no mount namespace to be had: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() }) // again, for some
	return s
}

func source(version string) *corev1.ConfigMapNodeConfigSource {
	return sourceOf("uid", version)
}

func sourceOf(uid, version string) *corev1.ConfigMapNodeConfigSource {
	return &corev1.ConfigMapNodeConfigSource{
		Namespace: "namespace", Name: "name", UID: types.UID(uid), ResourceVersion: version, KubeletConfigKey: "kubelet",
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError compares with a part of the message; "" means no error.
func wantError(t *testing.T, err error, part string) {
	t.Helper()
	switch {
	case part == "" && err != nil:
		t.Fatalf("error %q, want none", err)
	case part != "" && (err == nil || !strings.Contains(err.Error(), part)):
		t.Fatalf("error %v, want one with %q", err, part)
	}
}

// giveAway makes the file somebody else's, which only root can.
func giveAway(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	must(t, os.Lchown(path, 65534, -1))
}
