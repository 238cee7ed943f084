//go:build machine

package machine

import (
	"os"
	"sync"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/machine/disk"
)

// image is that of a node's disk, open for all tests: the disks of installed nodes are above it, too.
var image = sync.OnceValues(func() (*os.File, error) { return os.Open(root) })

// nodeDisk is that of a node that has never been switched on.
func nodeDisk(t *testing.T) *disk.Disk {
	t.Helper()
	file, err := image()
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
