package kubeletlog

import "strings"

// OutOfInotify reports whether a kubelet says with the last error of its log that the node had no inotify instance or
// watch left for it. One that goes on without only warns, in other lines. The words are those of the two system calls
// (cAdvisor's watch of the cgroups), and the same since 1.8; kubernetes issues 58081 and 7815 have them from people's
// nodes.
func OutOfInotify(log []byte) bool {
	last := LastErrorLine(log)
	return strings.Contains(last, "inotify_init") && strings.Contains(last, "too many open files") ||
		strings.Contains(last, "inotify_add_watch") && strings.Contains(last, "no space left on device")
}
