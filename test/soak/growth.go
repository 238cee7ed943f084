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
	life      int // which supervisor; growth is of one life
	files     int // descriptors
	threads   int
	anonymous int // KiB of memory that no file backs
	resident  int // KiB of memory
	stateDir  disk
	runDir    disk
}

// A disk is what a folder takes.
type disk struct{ files, kib int }

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

	mostMoreGoroutines = 12 // of any supervisor, over the one that had the fewest
)

func (s *soaker) measure() (size, error) {
	pid := s.service.pid()
	z := size{life: s.service.life()}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return z, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return z, err
	}
	z.files, z.threads = len(entries), numberIn(status, "Threads:")
	z.anonymous, z.resident = numberIn(status, "RssAnon:"), numberIn(status, "VmRSS:")
	if z.stateDir, err = diskOf(s.service.stateDir()); err != nil {
		return z, err
	}
	z.runDir, err = diskOf(s.service.runDir())
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
func diskOf(folder string) (d disk, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		d.files++
		if stat, is := info.Sys().(*syscall.Stat_t); is {
			d.kib += int(stat.Blocks) / 2
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
		{"file descriptors", now.files, min(mostFiles, first.files+moreFiles)},
		{"threads", now.threads, mostThreads},
		{"KiB of anonymous memory", now.anonymous, min(mostAnonymous, first.anonymous+moreAnonymous)},
		{"KiB of resident memory", now.resident, mostResident},
		{"entries of the state folder", now.stateDir.files, mostStateFiles},
		{"KiB of the state folder", now.stateDir.kib, mostStateKiB},
		{"KiB of the run folder", now.runDir.kib, mostRunKiB},
	} {
		if row.now > row.most {
			return fmt.Sprintf("%d %s, at most %d were expected; the first quiescent moment of this supervisor had %+v, this one has %+v", row.now, row.name, row.most, first, now)
		}
	}
	return ""
}
