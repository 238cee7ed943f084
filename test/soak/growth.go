//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A size is what the supervisor takes at a quiescent moment.
type size struct {
	Life      int   `json:"life"`  // which supervisor; growth is of one life
	Files     int   `json:"files"` // descriptors
	Threads   int   `json:"threads"`
	Anonymous int   `json:"anonymousKiB"` // memory that no file backs
	Resident  int   `json:"residentKiB"`  // memory
	StateDir  usage `json:"stateDir"`
	RunDir    usage `json:"runDir"`
}

// A usage is what a folder takes.
type usage struct {
	Files int `json:"files"`
	KiB   int `json:"kib"`
}

// Bounds that no quiescent moment exceeds. A supervisor has the least when it was just started; these leave room for a change that is
// seen late, and for what the Go runtime keeps. Three checkpoints and their folders are at most 12 entries of STATE_DIR.
const (
	mostFiles      = 40
	mostThreads    = 40
	mostAnonymous  = 24 << 10
	mostResident   = 48 << 10
	mostStateFiles = 40
	mostStateKiB   = 1 << 10
	mostRunKiB     = 16 << 10

	moreFiles     = 6 // between the first quiescent moment of a life and a later one
	moreAnonymous = 8 << 10

	mostGoroutines = 60 // of any supervisor; about 42 are there at rest, and fewer while it starts
)

func (s *soaker) measure() (size, error) {
	pid := s.service.pid()
	z := size{Life: s.service.life()}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return z, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return z, err
	}
	z.Files, z.Threads = len(entries), numberIn(status, "Threads:")
	z.Anonymous, z.Resident = numberIn(status, "RssAnon:"), numberIn(status, "VmRSS:")
	if z.StateDir, err = diskOf(s.service.stateDir()); err != nil {
		return z, err
	}
	z.RunDir, err = diskOf(s.service.runDir())
	return z, err
}

// numberIn reads a line of /proc/PID/status.
func numberIn(status []byte, name string) int {
	for line := range strings.Lines(string(status)) {
		if rest, is := strings.CutPrefix(line, name); is {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}

// diskOf counts what is allocated: a log with holes is no larger than what it holds.
func diskOf(folder string) (d usage, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		d.Files++
		if stat, is := info.Sys().(*syscall.Stat_t); is {
			d.KiB += int(stat.Blocks) / 2
		}
		return nil
	})
	return d, err
}

// grown tells what has grown from the first quiescent moment of a life to a later one, or beyond all bounds; "" for nothing.
func grown(first, now size) string {
	for _, row := range []struct {
		name      string
		now, most int
	}{
		{"file descriptors", now.Files, min(mostFiles, first.Files+moreFiles)},
		{"threads", now.Threads, mostThreads},
		{"KiB of anonymous memory", now.Anonymous, min(mostAnonymous, first.Anonymous+moreAnonymous)},
		{"KiB of resident memory", now.Resident, mostResident},
		{"entries of the state folder", now.StateDir.Files, mostStateFiles},
		{"KiB of the state folder", now.StateDir.KiB, mostStateKiB},
		{"KiB of the run folder", now.RunDir.KiB, mostRunKiB},
	} {
		if row.now > row.most {
			return fmt.Sprintf("%d %s, at most %d were expected; the first quiescent moment of this supervisor had %+v, this one has %+v", row.now, row.name, row.most, first, now)
		}
	}
	return ""
}
