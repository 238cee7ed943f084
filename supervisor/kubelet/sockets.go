//go:build linux

package kubelet

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A heldListener remembers which open file of the process was seen to be the listening socket: while that is open, it still is. The
// kernel's table of sockets has every connection of the node and is long to read, too long for every look at a healthy kubelet.
type heldListener struct{ file, socket string }

// owned reports whether the process listens on the port of address itself: an inode of its network namespace's table of listening
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
	for _, table := range []string{"tcp", "tcp6"} { // the second is not read where the first has it
		found := listeners(filepath.Join("/proc", strconv.Itoa(pid), "net", table), uint16(number))
		held, err := listenerAmong(pid, socketsOf(found))
		if err != nil {
			return heldListener{}, fmt.Errorf("reading the kubelet's open files: %w", err)
		}
		if held != (heldListener{}) {
			return held, nil
		}
	}
	return heldListener{}, fmt.Errorf("healthz at %s is answered by another process than our kubelet", address)
}

// listenerAmong finds the first open file of the process that is one of the sockets.
func listenerAmong(pid int, sockets map[string]bool) (heldListener, error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	files, err := os.ReadDir(folder)
	if err != nil {
		return heldListener{}, err
	}
	for _, file := range files {
		path := filepath.Join(folder, file.Name())
		if target := linked(path); sockets[target] {
			return heldListener{file: path, socket: target}, nil
		}
	}
	return heldListener{}, nil
}

// A listener is a socket that listens.
type listener struct {
	address netip.Addr // in the kernel's own form: 127.0.0.1 of a socket for IPv6 is ::ffff:127.0.0.1
	socket  string     // what a link in /proc/PID/fd says of it
}

func socketsOf(list []listener) map[string]bool {
	sockets := map[string]bool{}
	for _, l := range list {
		sockets[l.socket] = true
	}
	return sockets
}

// listenersAt lists what listens on the port in the network namespace of the process.
func listenersAt(pid int, port uint16) []listener {
	folder := filepath.Join("/proc", strconv.Itoa(pid), "net")
	return append(listeners(filepath.Join(folder, "tcp"), port), listeners(filepath.Join(folder, "tcp6"), port)...)
}

// listeners reads them from a table like /proc/net/tcp (proc(5)). The kernel lists what listens first (net/ipv4/tcp_ipv4.c), so what comes
// behind is not read where the port was found: a node with ten thousand connections, closed ones among them, takes 50 ms for it.
func listeners(table string, port uint16) []listener {
	const listening, fieldLocal, fieldState, fieldInode = "0A", 1, 3, 9
	file, err := os.Open(table)
	if err != nil {
		return nil // no IPv6, or the process has just ended
	}
	defer func() { _ = file.Close() }()
	var found []listener
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) <= fieldInode || fields[fieldState] != listening {
			if len(found) > 0 {
				break
			}
			continue
		}
		host, hexPort, _ := strings.Cut(fields[fieldLocal], ":")
		address, known := kernelAddress(host)
		if local, err := strconv.ParseUint(hexPort, 16, 16); err == nil && known && uint16(local) == port {
			found = append(found, listener{address, "socket:[" + fields[fieldInode] + "]"})
		}
	}
	return found
}

// kernelAddress reads an address as the kernel's tables have it: groups of four bytes, each a number of this machine's byte order.
func kernelAddress(text string) (netip.Addr, bool) {
	bytes, err := hex.DecodeString(text)
	if err != nil || len(bytes)%4 != 0 {
		return netip.Addr{}, false
	}
	for word := range slices.Chunk(bytes, 4) {
		binary.BigEndian.PutUint32(word, binary.NativeEndian.Uint32(word))
	}
	return netip.AddrFromSlice(bytes)
}
