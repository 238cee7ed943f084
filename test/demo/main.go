//go:build linux

// Command demo shows the whole story of kubelet-supervisor on this machine: a real API server and a real kubelet in a network
// namespace of their own, a configuration that is assigned, one that is refused, one that kills the kubelet, and the way back.
// Then two nodes with fake kubelets join, and a pool does the same with all three, by the commands of docs/howto/pools.md.
//
// It promises that each "ok" was seen on the Node, in the kubelet's configz or in the process table, never inferred; that it
// exits with 0 only when every step was seen, else with 1, or with 130 when it was interrupted; and that it leaves
// nothing on the machine in any of these cases. `make demo` builds what it needs: our programs and the fake kubelet beside it, and the real
// parts that KUBELET_SUPERVISOR_PARTS names.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run()) }

func run() int {
	// They stay caught until the end, so that a second Ctrl-C does not stop the cleaning up. SIGPIPE is what `| head` sends.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	p := newPrinter(os.Stdout)
	err := show(ctx, p)
	if err == nil {
		return 0
	}
	what, code := "FAILED", 1
	if ctx.Err() != nil {
		what, code = "Interrupted", 130
	}
	p.heading(what)
	p.line(red, "  "+err.Error())
	return code
}
