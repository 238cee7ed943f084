package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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
