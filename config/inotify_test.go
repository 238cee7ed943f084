package config

import (
	"path/filepath"
	"testing"
)

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
		"as JSON": {`{"ts":1732511257476.4,"caller":"kubelet/kubelet.go:1804","msg":"Failed to start cAdvisor","err":"inotify_init: too many open files"}` + "\n", true},
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

func TestMaxOpenFiles(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want int64
	}{
		"the file says it":         {written(t, "said.yaml", "maxOpenFiles: 20\n"), 20},
		"the kubelet's own":        {written(t, "silent.yaml", "maxPods: 20\n"), 1_000_000},
		"not a number":             {written(t, "wrong.yaml", "maxOpenFiles: many\n"), 1_000_000},
		"no file":                  {"", 1_000_000},
		"one that cannot be read":  {filepath.Join(t.TempDir(), "none"), 1_000_000},
		"one that is no YAML file": {written(t, "broken.yaml", "\t: no"), 1_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MaxOpenFiles(nil, test.file); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}
