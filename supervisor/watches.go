//go:build linux

package supervisor

// watches look at what may change apart from the kubelet, as long as the supervisor lives, and report to the loop: local files, the
// cluster's keys, what a kubelet that starts would meet, and the files of our own unit.
type watches struct {
	*inputs
	*workers
	effectives *effectives
}
