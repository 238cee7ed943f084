//go:build linux

package kubelet

import "github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
import "github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/kubeletlog"

// outOfInotify: the node had no inotify instance or watch left, by the kubelet's last words. That is an environment (rule 8), unless the
// configuration itself allows fewer open files than the fallback: the kubelet's words for that are the same. After a reload the file is
// not known, and the exit counts like any other.
func (c *Child) outOfInotify(log []byte) bool {
	if c.file == "" || !kubeletlog.OutOfInotify(log) {
		return false
	}
	arguments := c.launcher.Arguments
	return kubeletconfig.MaxOpenFiles(arguments, c.file) >= kubeletconfig.MaxOpenFiles(arguments, c.fallback)
}
