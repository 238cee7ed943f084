//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A node that has no inotify instance left makes a kubelet exit, whatever its configuration. One that finds one again, the fallback among
// them, proves nothing against what was on trial. Here a user namespace has a limit of its own, so the rest of the machine keeps its
// instances; the real kubelet says the real words.
func TestOutOfInotify(t *testing.T) {
	const limited = `unshare --user --map-root-user --mount sh -c 'mount --bind /dev/null /dev/kmsg && echo 3 >/proc/sys/user/max_inotify_instances && exec "$0" "$@"' `
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", limited+"true").CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: this machine allows no user namespace with a limit of its own: %v: %s", err, out)
	}
	n := sharedNode(t)
	marker := filepath.Join(n.Folder, uniqueName("short"))
	wrapper := filepath.Join(n.Folder, uniqueName("wrapper"))
	script := fmt.Sprintf(`#!/bin/sh
for argument; do case "$argument" in --config=*) file=${argument#--config=} ;; esac; done
if [ -e %s ] && grep -q 'maxPods.*74' "$file"; then exec %s %s "$@"; fi
exec %[3]s "$@"
`, marker, limited, n.Kubelet())
	for file, content := range map[string]string{marker: "", wrapper: script} {
		if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := n.startedLocal(t, options{Kubelet: wrapper, Flags: []string{"--trial-failures=2", "--trial-period=1h"}})
	good := n.putConfigMap(t, "inotify", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 74))})
	n.assign(t, good.assignment("kubelet"))
	v := n.awaitNode(t, "the fallback runs, and the environment is to blame", func(v nodeView) bool { // until it runs, active is what ran last
		return v.is(good.assignment("kubelet"), "EnvironmentFailing") && v.Config.Active == nil
	})
	wantStatus(t, v, good.source("kubelet"), nil, nil, "")
	for _, words := range []string{"using last-known-good (default)", "exited 2 times in its trial", "inotify_init: too many open files", "fs.inotify.max_user_instances"} {
		if !strings.Contains(v.Condition.Message, words) {
			t.Errorf("the message does not say %q: %s", words, v.Condition.Message)
		}
	}
	if err := os.Remove(marker); err != nil {
		t.Fatal(err)
	}
	v = n.awaitReason(t, good.assignment("kubelet"), "InTrial")
	wantStatus(t, v, good.source("kubelet"), good.source("kubelet"), nil, "")
	if got := s.configz(t)["maxPods"]; got != 74.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 74", got)
	}
}
