//go:build linux

package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestRunDirIsOursAlone(t *testing.T) {
	for _, row := range []struct {
		name, want string
		spoil      func(path string) error
	}{
		{"absent", "", func(string) error { return nil }},
		{"ours", "", func(path string) error { return os.Mkdir(path, 0o755) }},
		{"a file", "not a directory", func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		{"a link", "is a link", func(path string) error { return os.Symlink(filepath.Dir(path), path) }},
		{"writable by others", "chmod", func(path string) error { return os.Mkdir(path, 0o700) }},
		{"somebody else's", "belongs to user 65534", func(path string) error { return os.Mkdir(path, 0o700) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run")
			if err := row.spoil(path); err != nil {
				t.Fatal(err)
			}
			switch row.name {
			case "writable by others": // past the umask
				if err := os.Chmod(path, 0o777); err != nil {
					t.Fatal(err)
				}
			case "somebody else's":
				if os.Geteuid() != 0 {
					t.Skip("only root can give a folder away")
				}
				if err := os.Chown(path, 65534, 65534); err != nil {
					t.Fatal(err)
				}
			}
			err := prepareRunDir(path)
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// Other users reach what is in the run folder by its name, such as the metrics socket, and do not see what is there. A narrower folder stays so.
func TestRunDirIsListedByUsAlone(t *testing.T) {
	for made, want := range map[os.FileMode]os.FileMode{0: 0o711, 0o755: 0o711, 0o750: 0o710, 0o700: 0o700, 0o711: 0o711} {
		path := filepath.Join(t.TempDir(), "parent", "run")
		if made != 0 {
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.Mkdir(path, 0o700), os.Chmod(path, made)); err != nil {
				t.Fatal(err)
			}
		}
		if err := prepareRunDir(path); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("made with %04o, it has mode %v (%v), and not %04o", made, info.Mode(), err, want)
		}
	}
}

// Everything in the run folder of a node with a kubelet is for the supervisor's own user, except for the metrics socket that was asked for.
func TestFilesInRunDirAreOursAlone(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok"))
	socket := filepath.Join(n.options.RunDir, "metrics.sock")
	n.options.MetricsAddress = "unix://" + socket
	n.run().awaitHealthy()
	seen := map[string]os.FileMode{}
	for deadline := time.Now().Add(fakenode.Patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(socket); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(n.options.RunDir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || path == n.options.RunDir {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, os.ErrNotExist) { // of a pre-flight
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Base(path)
		seen[name] = info.Mode().Perm()
		want := os.FileMode(0o600)
		switch {
		case path == socket:
			want = 0o660
		case entry.IsDir():
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, and not %v", name, info.Mode(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"notify", "state.json", "metrics.sock", "kubelet.yaml"} {
		if _, is := seen[name]; !is {
			t.Errorf("%s is not there: %v", name, seen)
		}
	}
}

// A run folder that is removed under a running supervisor is back at the next start, with all that is in it.
func TestARunFolderThatIsRemoved(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	source := n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok"))
	r := n.run()
	first := r.awaitHealthy().Child.PID
	if err := errors.Join(os.RemoveAll(n.options.RunDir), syscall.Kill(first, syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	record := r.awaitAnother(first)
	if record.Runs == nil || record.Runs.Source != source {
		t.Errorf("it runs %+v", record.Runs)
	}
	starts := n.entries("start")
	if socket := starts[len(starts)-1].Environment["NOTIFY_SOCKET"]; socket != filepath.Join(n.options.RunDir, "notify") {
		t.Errorf("the kubelet's notify socket is %q", socket)
	}
	if _, err := os.Stat(filepath.Join(n.options.RunDir, "notify")); err != nil {
		t.Error(err)
	}
}
