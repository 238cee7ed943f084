package docs

import (
	"regexp"
	"strings"
	"testing"
)

// mostNotRun is how many commands of the pages no test types. A page that needs more says why they cannot be typed, and changes this.
const mostNotRun = 33

var (
	fences = regexp.MustCompile("(?ms)^ *```([^\n]*)\n(.*?)\n? *```$")
	typed  = regexp.MustCompile(`(?m)^ *[$#] ((?:[A-Z_]+=\S+ +)?(?:kubectl|kubelet-supervisor|systemctl|journalctl|apt|apt-get|dnf|kubeadm)\b.*)$`)
	prompt = regexp.MustCompile(`(?m)^ *(?:[$#] )?((?:[A-Z_]+=\S+ +)?(?:kubectl|kubelet-supervisor|systemctl|journalctl|apt|apt-get|dnf|kubeadm) \S.*)$`)
)

// Every command that a page shows is typed by a test, or says that it is not: fences with commands of ours, kubectl's, systemd's, of
// package managers or of kubeadm are "console" (TestPages and TestOperating of test/e2e, TestPoolsPage of test/fleet, TestPages of
// test/systemd), "console machine" (TestSystemExtension of test/machine), "console selinux" (TestSELinuxByHand there), "console release" (make test-release, the page of which is
// docs/howto/verify.md), "console audit" (TestTheAuditPageFindsAssignments here, TestTheAuditLogTellsWhoAssigned of test/fleet) or "console not-run".
func TestCommandsAreTypedOrSayThatTheyAreNot(t *testing.T) {
	notRun, run := 0, 0
	for page, text := range pages(t) {
		for _, fence := range fences.FindAllStringSubmatch(text, -1) {
			info, inside := strings.TrimSpace(fence[1]), fence[2]
			found := len(prompt.FindAllString(inside, -1))
			switch info {
			case "console", "console machine", "console selinux", "console release", "console audit":
				run += len(typed.FindAllString(inside, -1))
			case "console not-run":
				notRun += found
			case "yaml", "mermaid", "json":
			default:
				if found > 0 {
					t.Errorf("%s has commands in a fence of %q; want console, or console not-run:\n%s", page, info, inside)
				}
			}
		}
	}
	t.Logf("%d commands are typed by tests, %d are not", run, notRun)
	if notRun > mostNotRun || notRun < mostNotRun-5 {
		t.Errorf("%d commands are typed by no test, want %d: mark no more than has to be, and change the number here", notRun, mostNotRun)
	}
}
