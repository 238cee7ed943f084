// Command kubelet-supervisor-controller rolls configurations of kubelets out over the nodes of a cluster, as KubeletPools say.
package main

import "os"

// version is set when the binary is built.
var version = "unknown"

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }
