//go:build linux

package host

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestSwaps(t *testing.T) {
	const header = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
	for name, row := range map[string]struct {
		content string
		want    []string
	}{
		"none":      {header, nil},
		"empty":     {"", nil},
		"two":       {header + "/dev/zram0                              partition\t8388604\t\t0\t\t100\n/swap\\040file file\t1\t\t0\t\t-2\n", []string{"/dev/zram0", `/swap\040file`}},
		"no header": {"\n\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := aMachine(t, map[string]string{"swaps": row.content})
			got, err := swaps(filepath.Join(root, "swaps"))
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("got %q, %v, want %q", got, err, row.want)
			}
		})
	}
	if got, err := swaps(filepath.Join(t.TempDir(), "none")); err != nil || got != nil {
		t.Errorf("a kernel without swap: %q, %v", got, err)
	}
	if _, err := swaps(t.TempDir()); err == nil {
		t.Error("what cannot be read is no swap")
	}
}
