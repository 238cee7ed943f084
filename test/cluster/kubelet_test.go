//go:build linux

package cluster

import (
	"slices"
	"strings"
	"testing"
)

// A kubelet is given no flag and no field that its version does not know.
func TestKubeletOfAnotherVersion(t *testing.T) {
	for version, expected := range map[string]struct {
		flag   bool
		absent []string
	}{
		"1.23.17":   {true, []string{"containerRuntimeEndpoint", "podLogsDir", "failCgroupV1"}},
		"1.26.15":   {true, []string{"containerRuntimeEndpoint", "podLogsDir", "failCgroupV1"}},
		"1.29.6":    {false, []string{"podLogsDir", "failCgroupV1"}},
		"1.30.14":   {false, []string{"failCgroupV1"}},
		"1.33.13":   {false, nil},
		"unknown":   {false, nil},
		"1.37.1-rc": {false, nil},
	} {
		c := &Cluster{Name: "n", Folder: "/folder", kubelet: version, parts: "/parts"}
		words := c.KubeletArguments("--last")
		if words[0] != "/parts/kubelet-"+version || words[len(words)-1] != "--last" {
			t.Errorf("%s: its command line is %q", version, words)
		}
		if seen := slices.Contains(words, "--container-runtime-endpoint=unix:///folder/containerd.sock"); seen != expected.flag {
			t.Errorf("%s: the runtime's endpoint is a flag: %t", version, seen)
		}
		for _, field := range []string{"containerRuntimeEndpoint", "podLogsDir", "failCgroupV1", "maxPods", "failSwapOn"} {
			if seen := !strings.Contains(c.KubeletConfig(), "\n"+field+": "); seen != slices.Contains(expected.absent, field) {
				t.Errorf("%s: field %s is absent: %t", version, field, seen)
			}
		}
	}
}
