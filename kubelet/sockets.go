package kubelet

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A heldListener remembers which open file of the process was seen to be the listening socket: while that is open, it still is. The
// kernel's table of sockets has every connection of the node and is long to read, too long for every look at a healthy kubelet.
type heldListener struct{ file, socket string }

// owned tells whether the process listens on the port of address itself: an inode of its network namespace's table of listening
// sockets is among its open files.
func (h *heldListener) owned(pid int, address string) error {
	if h.file != "" && linked(h.file) == h.socket {
		return nil
	}
	held, err := findListener(pid, address)
	*h = held
	return err
}

func findListener(pid int, address string) (heldListener, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return heldListener{}, fmt.Errorf("reading the healthz address: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return heldListener{}, fmt.Errorf("reading the healthz port: %w", err)
	}
	inodes := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		listeners(filepath.Join("/proc", strconv.Itoa(pid), "net", table), number, inodes)
	}
	folder := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	files, err := os.ReadDir(folder)
	if err != nil {
		return heldListener{}, fmt.Errorf("reading the kubelet's open files: %w", err)
	}
	for _, file := range files {
		path := filepath.Join(folder, file.Name())
		target := linked(path)
		if inode, found := strings.CutPrefix(target, "socket:["); found && inodes[strings.TrimSuffix(inode, "]")] {
			return heldListener{file: path, socket: target}, nil
		}
	}
	return heldListener{}, fmt.Errorf("healthz at %s is answered by another process than our kubelet", address)
}

// listeners collects the inodes of the sockets that listen on the port, from a table like /proc/net/tcp (proc(5)).
func listeners(table string, port uint64, inodes map[string]bool) {
	const listening, fieldLocal, fieldState, fieldInode = "0A", 1, 3, 9
	file, err := os.Open(table)
	if err != nil {
		return // no IPv6, or the process has just ended
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) <= fieldInode || fields[fieldState] != listening {
			continue
		}
		_, hex, _ := strings.Cut(fields[fieldLocal], ":")
		if local, err := strconv.ParseUint(hex, 16, 16); err == nil && local == port {
			inodes[fields[fieldInode]] = true
		}
	}
}
