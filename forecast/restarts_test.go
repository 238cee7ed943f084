package forecast

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

func TestRestarts(t *testing.T) {
	pods := []corev1.Pod{aPod("a", 0), aPod("n", 1, never), aPod("s", 2, static)}
	off := false
	checkAll(t, []row{
		{name: "cgroupRoot", then: changes(func(c *Configuration) { c.CgroupRoot = "/other" }), pods: pods, losses: "a:CgroupRoot+ n:CgroupRoot", static: "s:CgroupRoot+"},
		{name: "another socket by another word", then: changes(func(c *Configuration) { c.ContainerRuntimeEndpoint = "unix:/run/crio/crio.sock" }), pods: pods[:1], losses: "a:ContainerRuntime+"},
		{name: "the socket without a scheme", then: changes(func(c *Configuration) { c.ContainerRuntimeEndpoint = "/run/containerd/containerd.sock" }), pods: pods},
		{name: "the socket with one slash", then: changes(func(c *Configuration) { c.ContainerRuntimeEndpoint = "unix:/run/containerd/containerd.sock" }), pods: pods},
		{name: "a root without its slash", now: changes(func(c *Configuration) { c.CgroupRoot = "/x" }), then: changes(func(c *Configuration) { c.CgroupRoot = "x" }), pods: pods},
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
		{name: "perhaps for one thing or the other", then: changes(soft("memory.available", "4100Mi"), func(c *Configuration) { c.CgroupDriver = "cgroupfs" }), pods: pods[:1], host: func(h *Host) { h.CgroupDriver = "" }, losses: "a:Evicted?"},
		{name: "refused pods are not restarted", then: changes(maxPods(2), func(c *Configuration) { c.CgroupRoot = "/other" }), pods: pods, losses: "a:CgroupRoot+ n:OutOfpods", static: "s:CgroupRoot+"},
	})
}

// What the node knows of its files counts more than what they are called; other headers of a URL may bring other pods.
func TestSameThings(t *testing.T) {
	served := func(pod *corev1.Pod) { pod.Annotations = map[string]string{SourceAnnotation: "http"} }
	f := Facts{Now: configuration(), Then: configuration(func(c *Configuration) {
		c.ContainerRuntimeEndpoint, c.StaticPodPath = "unix:///run/link.sock", "/etc/link"
	}), Node: nodeWith(t, configuration()), Pods: []corev1.Pod{aPod("a", 0), aPod("s", 1, static), aPod("h", 2, served)}, Host: machine()}
	if got := Of(f); lines(got.Losses) != "a:ContainerRuntime+" || lines(got.Static) != "s:StaticPodPath h:ContainerRuntime+" {
		t.Errorf("other things: %+v", got)
	}
	f.SameRuntime = true
	if got := Of(f); lines(got.Losses) != "" || lines(got.Static) != "s:StaticPodPath" { // the path of a file is part of the uid of its pod
		t.Errorf("the same things: %+v", got)
	}
	f.Then.StaticPodPath, f.OtherPodHeaders = f.Now.StaticPodPath, true
	if got := Of(f); lines(got.Static) != "h:StaticPodURL?" || got.Harm() > 0 || got.Static[0].Why == "" {
		t.Errorf("other headers: %+v", got)
	}
}

func TestSocket(t *testing.T) {
	for endpoint, want := range map[string]string{
		"unix:///run/a.sock": "/run/a.sock", "unix:/run/a.sock": "/run/a.sock", "/run/a.sock": "/run/a.sock", "unix:///var/run//a.sock": "/run/a.sock",
		"/run/a b%zz.sock": "/run/a b%zz.sock", "/run/../run/./a.sock": "/run/a.sock", "/var/run": "/var/run",
		"run dir/a.sock":    "run dir/a.sock",
		"tcp://127.0.0.1:1": "tcp://127.0.0.1:1", "unix://%zz": "unix://%zz",
	} {
		if got := Socket(endpoint); got != want {
			t.Errorf("%s is read as %s, want %s", endpoint, got, want)
		}
	}
}

func TestFoldersOfStaticPods(t *testing.T) {
	for path, want := range map[string]string{"": "", "/etc/a/": "/etc/a", "/etc//a": "/etc/a"} {
		if got := (&Configuration{StaticPodPath: path}).StaticPodFolder(); got != want {
			t.Errorf("%q is the folder %q, want %q", path, got, want)
		}
	}
}

// Which sandboxes are of pods that a list lacks: not those of static pods, nor of pods that are listed or have ended.
func TestSandboxesWithoutAPod(t *testing.T) {
	for source, want := range map[string]bool{"": false, "api": false, "file": true, "http": true} {
		if s := (Sandbox{Source: source}); s.Static() != want {
			t.Errorf("from %q: static %t", source, s.Static())
		}
	}
	pods := []corev1.Pod{aPod("a", 0), mirrored("s")}
	got := WithoutPod([]Sandbox{fromAPI("a"), fromAPI("b"), fromAPI("ended"), ran("s"), ran("t"), {Name: "m", UID: "hash-s"}}, pods, map[types.UID]bool{"uid-ended": true})
	if len(got) != 1 || got[0].Name != "b" {
		t.Errorf("%+v", got)
	}
}

// With a pod that any restart may end, and a static one that may go, it is not certain that one more is evicted.
func TestEvictionBesideDoubts(t *testing.T) {
	served := func(pod *corev1.Pod) { pod.Annotations = map[string]string{SourceAnnotation: "http"} }
	f := Facts{Now: configuration(), Then: configuration(hard("memory.available", "99%")), Node: nodeWith(t, configuration()), Host: machine(), OtherPodHeaders: true,
		Pods: []corev1.Pod{aPod("bu", 0, asks("cpu", "100m")), aPod("gpu", 1, asks("cpu", "100m", "example.com/gpu", "1")), aPod("h", 2, served)}}
	f.Node.Status.Allocatable["example.com/gpu"] = resource.MustParse("1")
	if got := Of(f); lines(got.Losses) != "bu:Evicted?" || lines(got.Static) != "h:StaticPodURL?" || lines(got.Anyway) != "gpu:UnexpectedAdmissionError?" || got.Least != 0 || got.LeastOfAll != 1 {
		t.Errorf("%+v", got)
	}
}
