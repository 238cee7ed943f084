//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// A unit, and a running supervisor that is to become its successor, name a link that leads to the program, and not the version that it leads to now.
func TestThePathThatAProgramWasCalledBy(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program, other, link := folder+"/1/kubelet-supervisor", folder+"/2/kubelet-supervisor", folder+"/bin/kubelet-supervisor"
	for _, path := range []string{written(t, program, "1"), written(t, other, "2"), written(t, folder+"/bin/x", "")} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for at, to := range map[string]string{link: program, folder + "/used": folder + "/1", folder + "/bin/dangling": "/absent"} {
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct{ called, path, want string }{
		"by the path of a link":            {link, "", link},
		"by a path from here":              {"bin/kubelet-supervisor", "", link},
		"by its name, with a link in PATH": {"kubelet-supervisor", folder + "/bin", link},
		"through a link to its folder":     {"kubelet-supervisor", folder + "/used", folder + "/used/kubelet-supervisor"},
		"by its own path":                  {program, "", program},
		"by a name that leads to another":  {"kubelet-supervisor", folder + "/2", program},
		"by a name that is not in PATH":    {"kubelet-supervisor", "/absent", program},
		"by what leads nowhere":            {folder + "/bin/dangling", "", program},
		"by no name":                       {"", "", program},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(folder)
			t.Setenv("PATH", test.path)
			if got := calledBy(test.called, program); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
	real, realErr := filepath.EvalSymlinks("/bin/sh")
	if merged, err := filepath.EvalSymlinks("/bin"); err == nil && realErr == nil && merged == "/usr/bin" {
		if got := calledBy("/bin/sh", real); got != "/usr/bin/sh" {
			t.Errorf("/bin/sh is %s, and the same program would have two names", got)
		}
	}
}
