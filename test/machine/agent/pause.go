//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A resumed is what the test gives a machine that goes on from a snapshot of its memory: what a boot would have found anew.
type resumed struct {
	Time    time.Time `json:"time"`
	Entropy []byte    `json:"entropy"`
}

// pause says that the machine may be snapshotted, and waits until one goes on from there. Then it has another time, and random numbers of
// its own: all machines of a snapshot would have the same boot id else, which the kernel makes when it is read first.
func pause() error {
	disks, err := filepath.Glob("/sys/block/vd*")
	if err != nil {
		return fmt.Errorf("looking for disks: %w", err)
	}
	if len(disks) > 0 {
		return fmt.Errorf("the kernel knows of the disks %q already", disks)
	}
	port, err := open()
	if err != nil {
		return err
	}
	defer port.Close()
	if _, err := unix.Getrandom(make([]byte, 1), 0); err != nil { // waits until the kernel has gathered enough to be reseeded
		return err
	}
	line, err := json.Marshal(answer{Paused: true})
	if err != nil {
		return err
	}
	if _, err := port.Write(append(line, '\n')); err != nil {
		return err
	}
	text, err := bufio.NewReader(port).ReadBytes('\n')
	if err != nil {
		return err
	}
	var r resumed
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("what a machine goes on with: %w", err)
	}
	now := unix.NsecToTimeval(r.Time.UnixNano())
	if err := unix.Settimeofday(&now); err != nil {
		return fmt.Errorf("setting the clock: %w", err)
	}
	return reseed(r.Entropy)
}

// reseed makes the kernel's next random number depend on these bytes.
func reseed(entropy []byte) error {
	device, err := os.OpenFile("/dev/urandom", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer device.Close()
	if _, err := device.Write(entropy); err != nil {
		return err
	}
	if err := unix.IoctlSetInt(int(device.Fd()), unix.RNDRESEEDCRNG, 0); err != nil {
		return fmt.Errorf("reseeding: %w", err)
	}
	return nil
}
