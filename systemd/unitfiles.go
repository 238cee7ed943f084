package systemd

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// maxUnitFile bounds what is read of one file of a unit.
const maxUnitFile = 1 << 20

// Digests gives, by path, what tells the contents of a unit's files apart: its unit file, drop-ins and environment files, by their patterns
// (glob(7)). systemd reads them again at each start of the unit. What cannot be read has the digest "".
func Digests(patterns []string) map[string]string {
	digests := map[string]string{}
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			paths = []string{pattern}
		}
		for _, path := range paths {
			digests[path] = digest(path)
		}
	}
	return digests
}

func digest(path string) string {
	if about, err := os.Stat(path); err != nil || !about.Mode().IsRegular() { // a pipe would hang
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	content, err := bounded.Read(file, maxUnitFile)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
