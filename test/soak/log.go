//go:build linux

package main

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// A supervisorLog is what the supervisors and their kubelets wrote, read as it grows and cut before it fills the disk.
type supervisorLog struct {
	path string
	read int64

	starts     int   // of kubelets, pre-flights not included
	goroutines []int // of each supervisor that was ended by SIGQUIT
	dumping    bool
	last       []string // the supervisor's own lines, the newest last
}

const (
	logLimit  = 64 << 20
	lastLines = 80
)

var ownLine = regexp.MustCompile(`^\d{4}-\d\d-\d\dT|^kubelet-supervisor: `)

// follow reads what is new. It is for quiescent moments: a line that is not whole yet is taken for one.
func (l *supervisorLog) follow() error {
	file, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	content := make([]byte, info.Size()-l.read)
	count, err := file.ReadAt(content, l.read)
	if err != nil && count < len(content) {
		return err
	}
	l.read += int64(count)
	for line := range strings.Lines(string(content)) {
		l.take(line)
	}
	if l.read < logLimit {
		return nil
	}
	l.read = 0
	return os.Truncate(l.path, 0) // all writers append
}

func (l *supervisorLog) take(line string) {
	own := ownLine.MatchString(line)
	switch {
	case own:
		l.dumping = false
		l.last = append(l.last, line)
		l.last = l.last[max(0, len(l.last)-lastLines):]
		// A start that a state file is in the way of is told twice.
		if strings.Contains(line, "starting the kubelet with ") && !strings.Contains(line, `"because": "FilesSetAside"`) {
			l.starts++
		}
	case strings.HasPrefix(line, "SIGQUIT: quit"):
		l.dumping, l.goroutines = true, append(l.goroutines, 0)
	case l.dumping && strings.HasPrefix(line, "goroutine "):
		l.goroutines[len(l.goroutines)-1]++
	}
}
