//go:build linux

package kubelet

import (
	"os/exec"
	"strings"
	"testing"
)

// The same last words are the node's fault, or the configuration's: that may allow itself too few open files.
func TestOutOfInotify(t *testing.T) {
	const short = `E1125 05:07:37.476433   23540 kubelet.go:1804] "Failed to start cAdvisor" err="inotify_init: too many open files"` + "\n"
	plain, few, more := written(t, "plain", "maxPods: 1\n"), written(t, "few", "maxOpenFiles: 20\n"), written(t, "more", "maxOpenFiles: 2000000\n")
	for name, test := range map[string]struct {
		file, fallback string
		script, log    string
		want           bool
	}{
		"it may open as many as the fallback": {plain, plain, "exit 1", short, true},
		"it may open more":                    {more, plain, "exit 1", short, true},
		"both may open few":                   {few, few, "exit 1", short, true},
		"it may open fewer":                   {few, plain, "exit 1", short, false},
		"the fallback is not known":           {plain, "", "exit 1", short, true},
		"its own file is not known":           {"", plain, "exit 1", short, false},
		"other words":                         {plain, plain, "exit 1", "panic: x\n", false},
		"an exit that is none":                {plain, plain, "exit 0", short, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Child{launcher: NewLauncher(Settings{}), file: test.file, fallback: test.fallback, fallbackRuntime: "another", command: exec.Command("sh", "-c", test.script)}
			_ = c.command.Run()
			got := c.exited(c.command.ProcessState, nil, []byte(test.log))
			if got.OutOfInotify != test.want || strings.Contains(got.Words, "max_user_instances") != test.want {
				t.Errorf("%+v", got)
			}
		})
	}
}
