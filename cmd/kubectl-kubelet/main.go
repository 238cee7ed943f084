// Command kubectl-kubelet is the plugin `kubectl kubelet`: kubelet configurations, assigned to nodes and watched until they run.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // pools have windows in a time zone, and not every machine has a database of them

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin"
)

// version is set when the binary is built.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once, whatever it is at
	code := plugin.Execute(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, version)
	stop()
	os.Exit(code)
}
