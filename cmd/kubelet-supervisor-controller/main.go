// Command kubelet-supervisor-controller rolls configurations of kubelets out over the nodes of a cluster, as KubeletPools say.
package main

import (
	"os"
	_ "time/tzdata" // an image from scratch has no time zones, and windows are in one

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/cli"
)

// version is set when the binary is built.
var version = "unknown"

func main() { os.Exit(cli.Execute(version, os.Args[1:], os.Stdout, os.Stderr)) }
