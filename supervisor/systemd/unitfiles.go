package systemd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// maxUnitFile bounds what is read of one file of a unit.
const maxUnitFile = 1 << 20

// Digests gives, by path, what tells the contents of a unit's files apart: its unit file, drop-ins and environment files, by their patterns
// (glob(7)). systemd reads them again at each start of the unit. The error is about a file that is there and cannot be read: whether it has
// changed is not known then.
func Digests(patterns []string) (map[string]string, error) {
	digests := map[string]string{}
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			paths = []string{pattern}
		}
		for _, path := range paths {
			digest, err := digestOf(path)
			switch {
			case errors.Is(err, fs.ErrNotExist): // gone since, or a link to nothing
			case err != nil:
				return nil, fmt.Errorf("reading a file of the unit: %w", err)
			default:
				digests[path] = digest
			}
		}
	}
	return digests, nil
}

func digestOf(path string) (string, error) {
	about, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !about.Mode().IsRegular() { // /dev/null masks a file, and a pipe would hang
		return about.Mode().Type().String(), nil
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	content, err := bounded.Read(file, maxUnitFile)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
