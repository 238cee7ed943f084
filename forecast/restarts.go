package forecast

import (
	"path"
	"strings"
)

// Reasons of ours, where the kubelet says nothing: it admits the pods and ends their containers all the same.
const (
	CgroupRoot       = "CgroupRoot"       // their cgroups are not where this kubelet looks for them
	CgroupsPerQOS    = "CgroupsPerQOS"    // they have none yet
	CgroupDriver     = "CgroupDriver"     // they have other names
	ContainerRuntime = "ContainerRuntime" // another runtime knows none of them
	StaticPodPath    = "StaticPodPath"    // what is read elsewhere is another pod
	StaticPodURL     = "StaticPodURL"
)

// startsAnew tells whether a pod that is ended for that reason stays, with other containers. What is read elsewhere is another pod, or none.
func startsAnew(reason string) bool {
	switch reason {
	case CgroupRoot, CgroupsPerQOS, CgroupDriver, ContainerRuntime:
		return true
	}
	return false
}

// restart tells what the change does to a pod that is admitted.
func restart(f Facts, c *candidate) verdict {
	now, then := f.Now, f.Then
	switch source := c.pod.Annotations[SourceAnnotation]; {
	case source == "file" && cleaned(now.StaticPodPath) != cleaned(then.StaticPodPath):
		return verdict{Reason: StaticPodPath, certain: true, why: "it comes from " + now.StaticPodPath + ", which is no longer read"}
	case source == "http" && now.StaticPodURL != then.StaticPodURL:
		return verdict{Reason: StaticPodURL, certain: true, why: "it comes from a URL that is no longer read"}
	case socket(now.ContainerRuntimeEndpoint) != socket(then.ContainerRuntimeEndpoint):
		return verdict{Reason: ContainerRuntime, certain: true, why: "it is started anew in the other runtime, and goes on in this one"}
	case !then.perQOS():
		return admitted // no pod has a cgroup that could be missing
	case !now.perQOS():
		return verdict{Reason: CgroupsPerQOS, certain: true, why: "it has no cgroup of its own"}
	case path.Clean(now.root()) != path.Clean(then.root()):
		return verdict{Reason: CgroupRoot, certain: true, why: "its cgroup is below " + now.root() + " and not below " + then.root()}
	case now.CgroupDriver != then.CgroupDriver && f.Host.CgroupDriver == "":
		return verdict{Reason: CgroupDriver, why: "its cgroup has another name with this driver, unless the runtime names the driver itself"}
	}
	return admitted
}

// socket is the path of an endpoint; /var/run is /run.
func socket(endpoint string) string {
	file := path.Clean(strings.TrimPrefix(endpoint, "unix://"))
	if rest, is := strings.CutPrefix(file, "/var/run/"); is {
		return "/run/" + rest
	}
	return file
}

func cleaned(folder string) string {
	if folder == "" {
		return ""
	}
	return path.Clean(folder)
}
