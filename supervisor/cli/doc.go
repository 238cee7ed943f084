// Package cli is the command line of kubelet-supervisor: flags, exit codes, signals and systemd's units.
package cli
