//go:build linux

package kubelet

import (
	"slices"
	"strings"
)

// Environment leaves out what systemd meant for the supervisor alone: its notify socket and its watchdog.
func Environment(environment []string) []string {
	return slices.DeleteFunc(environment, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "NOTIFY_SOCKET" || name == "WATCHDOG_PID" || name == "WATCHDOG_USEC"
	})
}
