package forecast

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestRestarts(t *testing.T) {
	pods := []corev1.Pod{aPod("a", 0), aPod("n", 1, never), aPod("s", 2, static)}
	off := false
	checkAll(t, []row{
		{name: "cgroupRoot", then: changes(func(c *Configuration) { c.CgroupRoot = "/other" }), pods: pods, losses: "a:CgroupRoot+ n:CgroupRoot", static: "s:CgroupRoot+"},
		{name: "the same root in other words", then: changes(func(c *Configuration) { c.CgroupRoot = "/" }), pods: pods},
		{name: "cgroups per class", now: changes(func(c *Configuration) { c.CgroupsPerQOS = &off; c.EnforceNodeAllocatable = nil }), then: changes(func(c *Configuration) { c.CgroupsPerQOS = nil }), pods: pods,
			losses: "a:CgroupsPerQOS+ n:CgroupsPerQOS", static: "s:CgroupsPerQOS+"},
		{name: "no cgroups per class", then: changes(func(c *Configuration) { c.CgroupsPerQOS = &off; c.EnforceNodeAllocatable = nil; c.CgroupRoot = "/x" }), pods: pods},
		{name: "a driver that the runtime names", then: changes(func(c *Configuration) { c.CgroupDriver = "cgroupfs" }), pods: pods},
		{name: "a driver", then: changes(func(c *Configuration) { c.CgroupDriver = "cgroupfs" }), pods: pods, host: func(h *Host) { h.CgroupDriver = "" }, losses: "a:CgroupDriver?+ n:CgroupDriver?", static: "s:CgroupDriver?+"},
		{name: "a runtime", then: changes(func(c *Configuration) { c.ContainerRuntimeEndpoint = "unix:///run/crio/crio.sock" }), pods: pods[:1], losses: "a:ContainerRuntime+"},
		{name: "the same socket", then: changes(func(c *Configuration) { c.ContainerRuntimeEndpoint = "unix:///var/run/containerd/containerd.sock" }), pods: pods},
		{name: "static pods of another folder", then: changes(func(c *Configuration) { c.StaticPodPath = "" }), pods: pods, static: "s:StaticPodPath"},
		{name: "the same folder", then: changes(func(c *Configuration) { c.StaticPodPath += "/" }), pods: pods},
		{name: "ended for one thing or the other", then: changes(soft("memory.available", "4100Mi"), func(c *Configuration) { c.CgroupRoot = "/other" }), pods: pods[:1], losses: "a:CgroupRoot+"},
		{name: "refused pods are not restarted", then: changes(maxPods(2), func(c *Configuration) { c.CgroupRoot = "/other" }), pods: pods, losses: "a:CgroupRoot+ n:OutOfpods", static: "s:CgroupRoot+"},
	})
}
