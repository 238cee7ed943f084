//go:build linux

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A label can be written without SELinux, by root.
func TestLabelsThatDiffer(t *testing.T) {
	labelled := func(name, label string) string {
		path := written(t, filepath.Join(t.TempDir(), name), "")
		if label == "" {
			return path
		}
		if err := unix.Setxattr(path, "security.selinux", []byte(label), 0); errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) {
			t.Skipf("NOT TESTED: labels cannot be written here (uid %d): %v", os.Geteuid(), err)
		} else if err != nil {
			t.Fatal(err)
		}
		return path
	}
	const kubelet, user = "system_u:object_r:kubelet_exec_t:s0\x00", "unconfined_u:object_r:user_home_t:s0"
	for name, row := range map[string]struct {
		ours, theirs string
		says         string
	}{
		"the same":               {kubelet, kubelet, ""},
		"the same type":          {"unconfined_u:object_r:kubelet_exec_t:s0:c1,c2", kubelet, ""},
		"another":                {user, kubelet, "has the SELinux type user_home_t and "},
		"no label of ours":       {"", kubelet, ""},
		"none of the kubelet's":  {user, "", ""},
		"what is none is no one": {"user_home_t", kubelet, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := unitFiles{executable: labelled("supervisor", row.ours)}
			program := labelled("kubelet", row.theirs)
			said := i.labelsOf(startCommand{line: program + " --config=/x"})
			if row.says == "" && said != "" || !strings.Contains(said, row.says) || row.says != "" && !strings.Contains(said, program+" has kubelet_exec_t: ") {
				t.Errorf("it says %q", said)
			}
		})
	}
}
