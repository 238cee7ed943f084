//go:build linux

package kubelet

import (
	"os"
	"strconv"
)

// ListeningAt finds the processes that listen on one of the ports in our network namespace, as far as their open files can be read.
func ListeningAt(ports ...uint16) (pids []int) {
	var found []listener
	for _, port := range ports {
		found = append(found, listenersAt(os.Getpid(), port)...)
	}
	if len(found) == 0 {
		return nil
	}
	sockets := socketsOf(found)
	entries, _ := os.ReadDir("/proc") // without it nothing is known of anybody
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if held, err := listenerAmong(pid, sockets); err == nil && held != (heldListener{}) {
			pids = append(pids, pid)
		}
	}
	return pids
}
