//go:build linux

// Command kubelet-supervisor is the parent of the kubelet: it changes the kubelet's configuration as its Node says, safely.
package main

import (
	"os"
	"runtime"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/cli"
)

// version is set when the binary is built.
var version = "unknown"

// The main goroutine stays on the main thread. A reload executes a program there: from any other thread the process would look like a
// zombie for a moment, and dead to a process that looks.
func init() { runtime.LockOSThread() }

func main() { os.Exit(cli.Execute(version, os.Args[1:], os.Stdout, os.Stderr)) }
