//go:build linux

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// registry is where the clusters of this machine are written down: NAME.json for each, locked while the process that brought
// it up lives, and the file host: how the machine was before the first one.
const registry = "/run/kubelet-supervisor-test"

var errInUse = errors.New("is up, in a process that still runs")

// A claim on a cluster's name: a locked file that says where its folder is.
type claim struct {
	name string
	file *os.File
}

type claimContent struct {
	Folder string `json:"folder"`
}

// newClaim claims a name; errInUse when it is taken.
func newClaim(name string) (*claim, error) {
	unlock, err := lockRegistry()
	if err != nil {
		return nil, err
	}
	defer unlock()
	c, err := openClaim(name, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err := saveHost(); err != nil {
		return nil, errors.Join(fmt.Errorf("claiming cluster %s: %w", name, err), c.file.Close())
	}
	_ = AllowInotify(EnoughInotify) // a machine that lets nobody change it may have enough
	return c, nil
}

// openClaim locks NAME.json; the registry is locked.
func openClaim(name string, flags int) (*claim, error) {
	file, err := os.OpenFile(filepath.Join(registry, name+".json"), flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("cluster %s: %w", name, errInUse)
	}
	return &claim{name: name, file: file}, nil
}

// record writes down which folder is the cluster's, for whoever has to clean up.
func (c *claim) record(folder string) error {
	return json.NewEncoder(c.file).Encode(claimContent{Folder: folder})
}

// release gives the name up; the last cluster of the machine restores what all share.
func (c *claim) release() error {
	unlock, err := lockRegistry()
	if err != nil {
		return err
	}
	defer unlock()
	defer c.file.Close()
	if err := os.Remove(c.file.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if others, err := filepath.Glob(filepath.Join(registry, "*.json")); err != nil || len(others) > 0 {
		return err
	}
	return restoreHost()
}

// Clean removes what a cluster of this name left when the process that brought it up was killed; nothing there is fine.
func Clean(name string) error {
	c, err := reopenClaim(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	content, err := io.ReadAll(c.file)
	var found claimContent
	if err == nil && len(content) > 0 { // empty: killed before it had a folder
		err = json.Unmarshal(content, &found)
	}
	if err == nil && found.Folder != "" {
		err = remove(name, found.Folder)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cleaning up after cluster %s: %w", name, err), c.file.Close())
	}
	return c.release()
}

func reopenClaim(name string) (*claim, error) {
	unlock, err := lockRegistry()
	if err != nil {
		return nil, err
	}
	defer unlock()
	return openClaim(name, os.O_RDWR)
}

// cleanAbandoned cleans up after every cluster whose process is gone.
func cleanAbandoned(log io.Writer) error {
	files, err := filepath.Glob(filepath.Join(registry, "*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		err := Clean(name)
		if errors.Is(err, errInUse) {
			continue
		}
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(log, "cluster %s: removed what an earlier run had left\n", name)
	}
	return nil
}

// lockRegistry makes the registry and locks it; it is held for a moment only.
func lockRegistry() (unlock func(), err error) {
	if err := os.MkdirAll(registry, 0o700); err != nil {
		return nil, err
	}
	folder, err := os.Open(registry)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", registry, err), folder.Close())
	}
	return func() { _ = folder.Close() }, nil
}
