//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const newestParts = "Kubernetes 1.36.3 (kubelet, kube-apiserver), etcd and containerd"

// newResult says what is measured, and describes the machine for a person who wants to know whether his is like it.
func newResult(o options, parts string) *Result {
	r := &Result{Commit: o.Commit, Date: time.Now().UTC().Truncate(time.Second), OOMScore: cluster.KubeletOOMScore(), Rounds: max(1, o.Rounds),
		Settle: o.Settle.String(), Steady: o.Steady.String(), Window: o.Window.String()}
	memory := "an unknown amount"
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		memory = fmt.Sprintf("%.0f GiB", float64(info.Totalram)*float64(info.Unit)/(1<<30))
	}
	model := firstValue("/proc/cpuinfo", "model name", runtime.GOARCH)
	r.Machine = []string{fmt.Sprintf("%d processors (%s), %s of memory", runtime.NumCPU(), model, memory)}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		r.Machine = append(r.Machine, fmt.Sprintf("Linux %s, %s", unix.ByteSliceToString(name.Release[:]),
			strings.Trim(firstValue("/etc/os-release", "PRETTY_NAME", "an unknown distribution"), `"`)))
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.Machine = append(r.Machine, "load average before the run: "+strings.Join(strings.Fields(string(load))[:3], " "))
	}
	r.Machine = append(r.Machine, parts+" on the same machine, over loopback; "+runtime.Version(), r.OOMScore.String())
	return r
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
