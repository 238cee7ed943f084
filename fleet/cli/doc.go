// Package cli is the command line of kubelet-supervisor-controller.
package cli
