package forecast

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reasons of ours for a static pod that any restart of the kubelet ends, because the folder of static pods differs from what runs.
const (
	StaticPodTwice   = "StaticPodTwice"   // several files have it, and the restart may bring that of another one
	StaticPodGone    = "StaticPodGone"    // no file has it
	StaticPodChanged = "StaticPodChanged" // its file was changed, and the kubelet has not taken the change
)

// Beginnings of what a kubelet writes on the sandbox of a pod, whatever the manifest has.
const (
	kubeletNotes  = "kubernetes.io/config."
	kubeletLabels = "io.kubernetes.pod."
)

// A cast is the pods that a restarted kubelet admits.
type cast struct {
	now, then []*candidate // with what runs, and with what is to run
	open      []Unknown
}

// cast joins the pods of the API with those of the container runtime and with the manifests of static pods: a static
// pod need not be in the API.
func (f Facts) cast() cast {
	var c cast
	c.now = candidates(f.Node, f.Pods)
	ready := ReadyUIDs(f.Sandboxes)
	for _, other := range c.now {
		other.runs = f.runs(other, ready)
	}
	for _, s := range WithoutPod(f.Sandboxes, f.Pods, nil) {
		c.open = append(c.open, Unknown{"pod " + s.Namespace + "/" + s.Name, "it runs, and the API server does not list it"})
	}
	c.addSandboxes(f)
	c.addManifests(f)
	c.then = slices.Clone(c.now)
	if f.readsOther() {
		c.then = slices.DeleteFunc(c.then, func(other *candidate) bool { return other.source() == "file" })
		for _, m := range f.Manifests[f.Then.StaticPodFolder()] {
			if m.Pod != nil {
				c.then = append(c.then, newCandidate(f.Node, f.staticPod(m.Pod, corev1.PodPending)))
			}
		}
	}
	if f.Now.StaticPodURL != f.Then.StaticPodURL {
		c.then = slices.DeleteFunc(c.then, func(other *candidate) bool { return other.source() == "http" })
		if f.Then.StaticPodURL != "" {
			c.open = append(c.open, Unknown{"staticPodURL", "which pods come from there is not known"})
		}
	}
	return c
}

// runs reports whether a pod runs. The object in the API of a static pod is a copy: while the pod runs, the copy can
// be Pending because it was made again just now, or terminating because a person deletes it.
func (f Facts) runs(c *candidate, ready map[types.UID]bool) bool {
	switch {
	case !c.static:
		return Runs(c.pod, ready)
	case f.Sandboxes == nil:
		return showsRunning(c.pod)
	}
	return Runs(c.pod, nil) || ready[types.UID(c.kubeletUID())]
}

// readsOther reports whether static pods are read from another place. The same folder under another name is one, too:
// the path of a file is part of the uid of its pod.
func (f Facts) readsOther() bool { return f.Now.StaticPodFolder() != f.Then.StaticPodFolder() }

// addSandboxes adds the static pods that run without an object in the API. An object of the same name can be of an older manifest.
func (c *cast) addSandboxes(f Facts) {
	known := c.staticKeys()
	for i := range f.Sandboxes {
		s := &f.Sandboxes[i]
		key := s.Namespace + "/" + s.Name
		if !s.Static() {
			continue
		}
		if known[key] != nil {
			known[key].runs = true
			continue
		}
		pod := &corev1.Pod{}
		if files := f.manifestsOf(f.Now, key); len(files) > 0 {
			pod = files[len(files)-1].Pod
		} else {
			c.open = append(c.open, Unknown{"static pod " + key, "what it asks for is not known"})
		}
		pod = f.staticPod(pod, corev1.PodRunning)
		pod.Namespace, pod.Name, pod.UID = s.Namespace, s.Name, types.UID(s.UID)
		pod.Annotations = map[string]string{SourceAnnotation: s.Source}
		known[key] = newCandidate(f.Node, pod)
		c.now = append(c.now, known[key])
	}
}

// addManifests adds the pods of files that are not known to run. Where the container runtime cannot be asked, they do.
// One that several files have runs, too: where it does not now, the kubelet is about to replace the pod of one file
// with that of another. One that the kubelet has refused, or that has ended, is admitted again, before the pods of the
// API, and takes their room.
func (c *cast) addManifests(f Facts) {
	known := c.staticKeys()
	for _, m := range f.Manifests[f.Now.StaticPodFolder()] {
		if m.Pod == nil {
			continue
		}
		key := f.keyOf(m.Pod)
		twice := len(f.manifestsOf(f.Now, key)) > 1
		switch other := known[key]; {
		case other != nil:
			other.runs = other.runs || twice
		case twice || f.Sandboxes == nil:
			other = newCandidate(f.Node, f.staticPod(m.Pod, corev1.PodRunning))
			c.now, known[key] = append(c.now, other), other
		default:
			other = newCandidate(f.Node, f.staticPod(m.Pod, corev1.PodPending))
			c.now, known[key] = append(c.now, other), other
			c.open = append(c.open, Unknown{m.File, "its pod does not run, and the restart may start it"})
		}
	}
}

// staticKeys are the static pods by their names.
func (c *cast) staticKeys() map[string]*candidate {
	known := map[string]*candidate{}
	for _, other := range c.now {
		if other.static {
			known[other.pod.Namespace+"/"+other.pod.Name] = other
		}
	}
	return known
}

// keyOf is the name of the pod that the kubelet makes of a manifest.
func (f Facts) keyOf(pod *corev1.Pod) string {
	return pod.Namespace + "/" + pod.Name + "-" + strings.ToLower(f.Node.Name)
}

// staticPod is the pod that the kubelet makes of a manifest.
func (f Facts) staticPod(manifest *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	pod := *manifest
	pod.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{SourceAnnotation: "file"}}
	pod.Namespace, pod.Name = manifest.Namespace, path.Base(f.keyOf(manifest))
	pod.Status.Phase = phase
	return &pod
}

// manifestsOf are the files that have this pod.
func (f Facts) manifestsOf(c *Configuration, key string) (files []Manifest) {
	for _, m := range f.Manifests[c.StaticPodFolder()] {
		if m.Pod != nil && f.keyOf(m.Pod) == key {
			files = append(files, m)
		}
	}
	return files
}

// source is where the kubelet has a pod from.
func (c *candidate) source() string { return c.pod.Annotations[SourceAnnotation] }

// kubeletUID is the uid that the kubelet has for a pod. That of a static pod is not the uid of its object in the API.
func (c *candidate) kubeletUID() string {
	if hash := c.pod.Annotations[mirrorAnnotation]; hash != "" {
		return hash
	}
	return string(c.pod.UID)
}

// readAgain returns what the restart does to a static pod whose file is read again from the same folder.
func (f Facts) readAgain(c *candidate) verdict {
	all, read := f.Manifests[f.Now.StaticPodFolder()]
	if c.source() != "file" || !read {
		return admitted
	}
	files := f.manifestsOf(f.Now, c.pod.Namespace+"/"+c.pod.Name)
	switch len(files) {
	case 0:
		gone := verdict{Reason: StaticPodGone, certain: true, why: "no file in " + f.Now.StaticPodPath + " has it"}
		if i := slices.IndexFunc(all, func(m Manifest) bool { return m.Pod == nil }); i >= 0 {
			gone.certain, gone.detail = false, path.Base(all[i].File)+" cannot be read"
		}
		return gone
	case 1:
		if f.runsOther(c, files[0]) {
			return verdict{Reason: StaticPodChanged, certain: true, detail: path.Base(files[0].File), why: files[0].File + " was changed, and the kubelet has not taken that"}
		}
		return admitted
	}
	var names []string
	for _, m := range files {
		names = append(names, path.Base(m.File))
	}
	return verdict{Reason: StaticPodTwice, certain: true, detail: strings.Join(names, " and "),
		why: "several files in " + f.Now.StaticPodPath + " have it, and the restart may bring that of another one"}
}

// runsOther reports whether the pod that runs is certainly not the one of the file: a label or an annotation differs.
// A manifest with a uid of its own can be changed without that.
func (f Facts) runsOther(c *candidate, m Manifest) bool {
	i := slices.IndexFunc(f.Sandboxes, func(s Sandbox) bool { return s.UID == c.kubeletUID() })
	if i < 0 || m.Pod.UID != "" {
		return false
	}
	return !hasAll(f.Sandboxes[i].Labels, m.Pod.Labels) || !hasAll(f.Sandboxes[i].Annotations, m.Pod.Annotations)
}

func hasAll(all, these map[string]string) bool {
	for key, value := range these {
		if has, is := all[key]; (!is || has != value) && !strings.HasPrefix(key, kubeletNotes) && !strings.HasPrefix(key, kubeletLabels) {
			return false
		}
	}
	return true
}
