//go:build linux

package kubelet

import "github.com/kubelet-supervisor/kubelet-supervisor/config"

// outOfInotify: the node had no inotify instance or watch left, by the kubelet's last words. That is an environment (rule 8), unless the
// configuration itself allows fewer open files than the fallback: the kubelet's words for that are the same. After a reload the file is
// not known, and the exit counts like any other.
func (c *Child) outOfInotify(log []byte) bool {
	if c.file == "" || !config.OutOfInotify(log) {
		return false
	}
	arguments := c.launcher.Arguments
	return config.MaxOpenFiles(arguments, c.file) >= config.MaxOpenFiles(arguments, c.fallback)
}
