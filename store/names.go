//go:build linux

package store

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// plain reports whether the name is at most limit bytes of letters, digits, '-', '_' and '.', and neither "." nor "..". The API
// server knows no other object names, keys or uids; resource versions are opaque, but were always numbers.
func plain(name string, limit int) bool {
	if name == "" || name == "." || name == ".." || len(name) > limit {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	}) < 0
}

// checkSource refuses a source that cannot name a checkpoint. For empty fields the words are upstream's.
func checkSource(source corev1.ConfigMapNodeConfigSource) error {
	switch {
	case source.UID == "":
		return errors.New("empty UID is ambiguous")
	case source.ResourceVersion == "":
		return errors.New("empty ResourceVersion is ambiguous")
	}
	if err := checkName("UID", string(source.UID)); err != nil {
		return err
	}
	return checkName("ResourceVersion", source.ResourceVersion)
}

// checkName refuses what is no base name, and the names that the store gives to things of its own.
func checkName(what, name string) error {
	limit := nameLimit - len(temporaryPrefix) - len(markerSuffix)
	if !plain(name, limit) {
		return fmt.Errorf("the %s %.64q cannot be a file name: it must be at most %d letters, digits, '-', '_' or '.'", what, name, limit)
	}
	if strings.HasPrefix(name, temporaryPrefix) || strings.HasSuffix(name, markerSuffix) ||
		strings.Contains(name, corruptInfix) || strings.Contains(name, baseInfix) {
		return fmt.Errorf("the %s %.64q cannot be a file name: the store gives such names to files of its own", what, name)
	}
	return nil
}

// checkKey refuses a payload key that cannot be a file, in upstream's words (files.go of Kubernetes 1.21) as far as upstream
// had any.
func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("invalid file key: must not be empty: %q", key)
	case strings.Contains(key, "/"):
		return fmt.Errorf("invalid file key %q, only base names are allowed", key)
	case key == "." || key == "..":
		return errors.New("invalid file key, may not be '.' or '..'")
	case len(key) > nameLimit:
		return fmt.Errorf("invalid file key %q, must be less than 255 characters", key)
	case !plain(key, nameLimit):
		return fmt.Errorf("invalid file key %q, only letters, digits, '-', '_' and '.' are allowed", key)
	}
	return nil
}

// apiPath is how upstream named a source in messages.
func apiPath(source corev1.ConfigMapNodeConfigSource) string {
	return fmt.Sprintf("/api/v1/namespaces/%s/configmaps/%s", source.Namespace, source.Name)
}
