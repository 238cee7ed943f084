//go:build linux

package store

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// holderReadings is how often the kernel's table is read for a lock that must be in it. The kernel hands the table out in pieces, and
// a lock that comes or goes between two of them shifts the rest: on a machine where locks come and go all the time, one reading in
// twenty was seen to miss a lock, and one in twenty to list it twice.
const holderReadings = 8

// holderOf returns the process that has locked a file, as the kernel lists it (proc_locks(5)); 0 if that is not certain.
func holderOf(locked fs.FileInfo) int {
	stat, known := locked.Sys().(*syscall.Stat_t)
	if !known {
		return 0
	}
	for range holderReadings {
		table, err := os.ReadFile("/proc/locks")
		if err != nil {
			return 0
		}
		if pids := holdersIn(string(table), stat.Ino); len(pids) == 1 {
			pid, _ := strconv.Atoi(pids[0])
			return pid
		}
	}
	return 0
}

// holdersIn gives the processes that hold the whole-file lock of an inode, each once. The device is not compared: some file systems
// have two numbers for one. So there can be several.
func holdersIn(table string, inode uint64) (pids []string) {
	for line := range strings.Lines(table) {
		// 1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], fmt.Sprintf(":%d", inode)) {
			continue
		}
		if !slices.Contains(pids, fields[4]) {
			pids = append(pids, fields[4])
		}
	}
	return pids
}
