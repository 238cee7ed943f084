//go:build e2e

package e2e

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const hugePagesFile = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"

// setHugePages leaves the machine as it was when the test is over.
func setHugePages(t *testing.T) (set func(count int)) {
	t.Helper()
	text, err := os.ReadFile(hugePagesFile)
	if err != nil {
		t.Skipf("this machine has no huge pages: %v", err)
	}
	before, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	set = func(count int) {
		t.Helper()
		if err := os.WriteFile(hugePagesFile, []byte(strconv.Itoa(count)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { set(before) })
	return set
}

// A kubelet counts huge pages when it starts. A pod that has some is lost by any restart while they are away, and a harmless change waits for them.
// They are the machine's, so that no other test may run beside it that compares what a Node shows: it is one of the long ones.
func TestLongHugePagesThatAreAway(t *testing.T) {
	set := setHugePages(t)
	set(8)
	h := sharedNode(t).running(t, options{}, 1, resources(object{"cpu": "10m", "memory": "16Mi", "hugepages-2Mi": "4Mi"}, object{"memory": "16Mi", "hugepages-2Mi": "4Mi"}))
	h.pods = h.k.allRun(t, 1)
	set(0)
	h.assigns(t, with("maxPods", 21))
	h.awaitHeld(t)
	h.stays(t, time.Second, "the change itself is harmless")
}
