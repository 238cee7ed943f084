package kubeletconfig

import (
	"os"
	"syscall"
)

// fileStamp changes with every change of the file's bytes, within a boot.
type fileStamp struct {
	device, inode uint64
	size          int64
	changed       syscall.Timespec
}

// stampOf is empty where nothing is known: then nothing is kept.
func stampOf(info os.FileInfo) fileStamp {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileStamp{}
	}
	return fileStamp{device: stat.Dev, inode: stat.Ino, size: stat.Size, changed: stat.Ctim}
}
