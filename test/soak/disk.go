//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

const diskSize = 64 << 20

// A hangingDisk is a file system of its own, for STATE_DIR. While it hangs, whoever writes to it waits, and cannot be killed either.
type hangingDisk struct {
	folder string

	holder *exec.Cmd // while it hangs
	wanted io.Closer // its stdin
	words  bytes.Buffer
}

// newDisk makes a file system in a file and mounts it. The cluster's end unmounts it.
func newDisk(folder string) (*hangingDisk, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	image := folder + ".ext4"
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return nil, err
	}
	if err := os.Truncate(image, diskSize); err != nil {
		return nil, err
	}
	for _, words := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop,noatime", image, folder}} {
		if output, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("making a disk that can hang: %q: %w: %s", words, err, output)
		}
	}
	return &hangingDisk{folder: folder}, nil
}

// holdFrozen thaws when its stdin ends: however this program ends, the file system does not stay frozen.
const holdFrozen = `trap '' INT TERM HUP; fsfreeze -f "$1" && echo frozen && read -r _; fsfreeze -u "$1"`

// hang returns when the disk hangs.
func (d *hangingDisk) hang() error {
	d.words.Reset()
	holder := exec.Command("sh", "-c", holdFrozen, "sh", d.folder)
	holder.Stderr, holder.SysProcAttr = &d.words, &syscall.SysProcAttr{Setpgid: true}
	stdin, err := holder.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		return err
	}
	if err := holder.Start(); err != nil {
		return err
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("frozen\n"))); err != nil {
		_ = stdin.Close()
		return fmt.Errorf("hanging the disk: %w: %s", errors.Join(err, holder.Wait()), d.words.String())
	}
	d.holder, d.wanted = holder, stdin
	return nil
}

// thaw lets the disk go on, if it hangs.
func (d *hangingDisk) thaw() error {
	if d.holder == nil {
		return nil
	}
	err := errors.Join(d.wanted.Close(), d.holder.Wait())
	d.holder = nil
	if err != nil {
		return fmt.Errorf("letting the disk go on: %w: %s", err, d.words.String())
	}
	return nil
}
