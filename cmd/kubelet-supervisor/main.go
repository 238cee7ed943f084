// Command kubelet-supervisor is the parent of the kubelet: it changes the kubelet's configuration as its Node says, safely.
package main

import "os"

// version is set when the binary is built.
var version = "unknown"

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }
