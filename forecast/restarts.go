package forecast

import (
	"net/url"
	"path"
	"strings"
)

// Reasons of ours, where the kubelet says nothing: it admits the pods and ends their containers anyway.
const (
	CgroupRoot       = "CgroupRoot"       // their cgroups are not where this kubelet looks for them
	CgroupsPerQOS    = "CgroupsPerQOS"    // they have none yet
	CgroupDriver     = "CgroupDriver"     // they have other names
	ContainerRuntime = "ContainerRuntime" // another runtime knows none of them
	StaticPodPath    = "StaticPodPath"    // what is read elsewhere is another pod
	StaticPodURL     = "StaticPodURL"
)

// startsAnew reports whether a pod that is ended for that reason stays, with other containers. What is read elsewhere
// is another pod, or none.
func startsAnew(reason string) bool {
	switch reason {
	case CgroupRoot, CgroupsPerQOS, CgroupDriver, ContainerRuntime:
		return true
	}
	return false
}

// restart returns what the change does to a pod that is admitted.
func restart(f Facts, c *candidate) verdict {
	now, then := f.Now, f.Then
	if v := f.readAgain(c); v.refused() && !f.readsOther() {
		return v
	}
	switch source := c.pod.Annotations[SourceAnnotation]; {
	case source == "file" && f.readsOther():
		return verdict{Reason: StaticPodPath, certain: true, why: "it comes from " + now.StaticPodPath + ", which is no longer read"}
	case source == "http" && now.StaticPodURL != then.StaticPodURL:
		return verdict{Reason: StaticPodURL, certain: true, why: "it comes from a URL that is no longer read"}
	case source == "http" && f.OtherPodHeaders:
		return verdict{Reason: StaticPodURL, why: "its URL is asked with other headers, and may answer with other pods"}
	case !f.SameRuntime && Socket(now.ContainerRuntimeEndpoint) != Socket(then.ContainerRuntimeEndpoint):
		return verdict{Reason: ContainerRuntime, certain: true, why: "it is started again in the other runtime, and continues in this one"}
	case !then.perQOS(): // no pod has a cgroup that could be missing
	case !now.perQOS():
		return verdict{Reason: CgroupsPerQOS, certain: true, why: "it has no cgroup of its own"}
	case now.root() != then.root():
		return verdict{Reason: CgroupRoot, certain: true, why: "its cgroup is below " + now.root() + " and not below " + then.root()}
	case now.CgroupDriver != then.CgroupDriver && f.Host.CgroupDriver == "":
		return verdict{Reason: CgroupDriver, why: "its cgroup has another name with this driver, unless the runtime names the driver itself"}
	}
	return admitted
}

// Socket is the path of a runtime's endpoint as a kubelet reads it: unix:/a, unix:///a and /a are one. /var/run is /run.
func Socket(endpoint string) string {
	read, err := url.Parse(endpoint)
	if err != nil || read.Scheme == "" {
		read, err = url.Parse("unix://" + endpoint)
	}
	if err != nil || read.Scheme != "unix" {
		return endpoint // no kubelet can reach it
	}
	file := path.Clean(read.Path)
	if rest, is := strings.CutPrefix(file, "/var/run/"); is {
		return "/run/" + rest
	}
	return file
}

// StaticPodFolder is staticPodPath in one way of writing it; "" for none.
func (c *Configuration) StaticPodFolder() string {
	if c.StaticPodPath == "" {
		return ""
	}
	return path.Clean(c.StaticPodPath)
}
