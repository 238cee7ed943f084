//go:build linux

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

const (
	swapsFile = "/proc/swaps"
	mostSwaps = 1 << 16 // bytes of the file; the kernel knows at most 32 swap areas
)

// Swaps are the devices and files that the host swaps to, as a kubelet that starts sees them: a file that is not there has none.
func Swaps() ([]string, error) { return swaps(swapsFile) }

func swaps(path string) (list []string, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := bounded.Read(file, mostSwaps)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	for _, line := range lines[1:] { // the first has the names of the columns
		name, _, _ := strings.Cut(line, " ")
		list = append(list, name)
	}
	return list, nil
}
