package store

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// holderOf says who has locked a folder, as the kernel tells it (proc_locks(5)); empty when that cannot be told for certain.
func holderOf(folder fs.FileInfo) string {
	stat, known := folder.Sys().(*syscall.Stat_t)
	table, err := os.ReadFile("/proc/locks")
	if !known || err != nil {
		return ""
	}
	holder := ""
	for line := range strings.Lines(string(table)) {
		// 1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF. The device is not compared: some file systems have two numbers for one.
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], fmt.Sprintf(":%d", stat.Ino)) {
			continue
		}
		if holder != "" {
			return ""
		}
		holder = fmt.Sprintf(" (pid %s)", fields[4])
	}
	return holder
}
