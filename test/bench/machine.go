package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// machineLines describe the machine for a person who wants to know whether his is like it.
func machineLines() []string {
	lines := []string{fmt.Sprintf("%d processors (%s), %s of memory", runtime.NumCPU(), firstValue("/proc/cpuinfo", "model name", runtime.GOARCH), memory())}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		lines = append(lines, fmt.Sprintf("Linux %s, %s", unix.ByteSliceToString(name.Release[:]),
			strings.Trim(firstValue("/etc/os-release", "PRETTY_NAME", "an unknown distribution"), `"`)))
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		lines = append(lines, "load average before the run: "+strings.Join(strings.Fields(string(load))[:3], " "))
	}
	return append(lines, sameMachine("Kubernetes 1.36.3 (kubelet, kube-apiserver), etcd and containerd"))
}

// machineWith are machineLines with other parts.
func machineWith(parts string) []string {
	lines := machineLines()
	lines[len(lines)-1] = sameMachine(parts)
	return lines
}

func sameMachine(parts string) string {
	return parts + " on the same machine, over loopback; " + runtime.Version()
}

func memory() string {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return "an unknown amount"
	}
	return fmt.Sprintf("%.0f GiB", float64(info.Totalram)*float64(info.Unit)/(1<<30))
}

// firstValue gives the value of the first line `NAME: VALUE` or `NAME=VALUE`.
func firstValue(file, name, otherwise string) string {
	content, _ := os.ReadFile(file)
	for line := range strings.Lines(string(content)) {
		if rest, is := strings.CutPrefix(line, name); is {
			return strings.Join(strings.Fields(strings.TrimLeft(strings.TrimSpace(rest), ":= \t")), " ")
		}
	}
	return otherwise
}
