package kubeletlog

import "testing"

func TestOutOfInotify(t *testing.T) {
	for name, test := range map[string]struct {
		log  string
		want bool
	}{
		"1.36.3, no instance": {`E1125 05:07:37.476343   23540 manager.go:326] Registration of the raw container factory failed: inotify_init: too many open files
E1125 05:07:37.476433   23540 kubelet.go:1804] "Failed to start cAdvisor" err="inotify_init: too many open files"
`, true},
		"1.8": {"F0110 21:30:25.764493   42304 kubelet.go:1230] Failed to start cAdvisor inotify_init: too many open files\n", true},
		"no watch": {"F0313 10:00:00.000000       1 kubelet.go:1344] Failed to start cAdvisor inotify_add_watch /sys/fs/cgroup/memory/kubepods/pod1: no space left on device\n",
			true},
		"as JSON": {`{"ts":1732511257476.4,"caller":"supervisor/kubelet/kubelet.go:1804","msg":"Failed to start cAdvisor","err":"inotify_init: too many open files"}` + "\n", true},
		"it went on without": {`E1125 05:08:13.361120   24145 plugin_manager.go:115] "The desired_state_of_world populator (plugin watcher) starts failed!" err="failed to start plugin fsWatcher, err: too many open files"
E1125 05:08:13.771230   24145 run.go:72] "command failed" err="failed to run Kubelet: no such thing"
`, false},
		"another file too many": {`E1125 05:08:13.771230   24145 run.go:72] "command failed" err="failed to run Kubelet: open /etc/x: too many open files"` + "\n", false},
		"a disk that is full":   {`E1125 05:08:13.771230   24145 run.go:72] "command failed" err="mkdir /var/lib/kubelet/pods: no space left on device"` + "\n", false},
		"no words":              {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OutOfInotify([]byte(test.log)); got != test.want {
				t.Errorf("%t", got)
			}
		})
	}
}
