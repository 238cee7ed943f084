//go:build linux

package cli

import "testing"

// As systemd 252 expands them; %H and the like mean the same in every unit.
func TestSpecifiersOfAName(t *testing.T) {
	const text = "%n %N %p %P %i %I %j %J %f %y %Y %H %% 100%"
	for unit, want := range map[string]string{
		"kubelet.service":           "kubelet.service kubelet kubelet kubelet   kubelet kubelet /kubelet /lib/x.service /lib %H %% 100%",
		"my-kubelet@n-1.service":    "my-kubelet@n-1.service my-kubelet@n-1 my-kubelet my/kubelet n-1 n/1 kubelet kubelet /n/1 /lib/x.service /lib %H %% 100%",
		`k\x2dubelet@a\x2d.service`: `k\\x2dubelet@a\\x2d.service k\\x2dubelet@a\\x2d k\\x2dubelet k-ubelet a\\x2d a- k\\x2dubelet k-ubelet /a- /lib/x.service /lib %H %% 100%`,
	} {
		if got := withoutOwnName(text, unit, "/lib/x.service"); got != want {
			t.Errorf("%s:\n%s, want\n%s", unit, got, want)
		}
	}
}
