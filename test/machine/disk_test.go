//go:build machine

package machine

import (
	"os"
	"sync"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/machine/disk"
)

// images are those of nodes' disks by policy, open for all tests: the disks of installed nodes are above them, too.
var images = map[string]func() (*os.File, error){
	"":        sync.OnceValues(func() (*os.File, error) { return os.Open(root) }),
	"kubelet": sync.OnceValues(func() (*os.File, error) { return os.Open(os.Getenv("KUBELET_SUPERVISOR_TEST_ROOT_SELINUX")) }),
	"debian":  sync.OnceValues(func() (*os.File, error) { return os.Open(os.Getenv("KUBELET_SUPERVISOR_TEST_ROOT_REFERENCE")) }),
}

// nodeDisk is that of a node that has never been switched on.
func nodeDisk(t *testing.T) *disk.Disk { t.Helper(); return nodeDiskWith(t, "") }

// nodeDiskWith is such a disk with a policy of the folder selinux; "" is none.
func nodeDiskWith(t *testing.T, policy string) *disk.Disk {
	t.Helper()
	file, err := images[policy]()
	if err != nil {
		t.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	d, err := disk.New(file, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return d
}
