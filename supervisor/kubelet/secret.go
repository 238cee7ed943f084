//go:build linux

package kubelet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// The secret of a run folder is in the environment of each kubelet that a supervisor of it starts. Other people can start programs with the
// words and the notify socket of a kubelet, but not with what only its user can read (rule 27).
const (
	secretFile     = "secret"
	secretVariable = "KUBELET_SUPERVISOR_SECRET="
)

var secretForm = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// readSecret gives the secret of a run folder; empty where there is none, or one that others may have read or written.
func readSecret(runDir string) string {
	file, err := os.OpenFile(filepath.Join(runDir, secretFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return ""
	}
	if owner, known := info.Sys().(*syscall.Stat_t); !known || int64(owner.Uid) != int64(os.Geteuid()) {
		return ""
	}
	text := make([]byte, 64)
	n, _ := file.Read(text)
	if secret := strings.TrimSpace(string(text[:n])); secretForm.MatchString(secret) {
		return secret
	}
	return ""
}

// keepSecret makes sure that the run folder has the secret that kubelets get: that which is there, else the one that
// is known, else a new one. One that is known is given with an error, too, where it cannot be written.
func keepSecret(runDir, known string) (string, error) {
	if secret := readSecret(runDir); secret != "" && (known == "" || secret == known) {
		return secret, nil
	}
	before := known
	if known == "" {
		known = rand.Text()
	}
	path := filepath.Join(runDir, secretFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return before, fmt.Errorf("removing a secret that others may know: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return before, fmt.Errorf("making the secret of the run folder: %w", err)
	}
	_, err = file.WriteString(known + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return before, fmt.Errorf("writing the secret of the run folder: %w", err)
	}
	return known, nil
}
