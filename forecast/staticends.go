package forecast

// A StaticPod is one that runs. Its kubelet says nowhere that it has ended it.
type StaticPod struct {
	Namespace, Name string
	Sandbox         string // its id: another one is another run of the pod
	folder, files   string // that it comes from, and what they have; "" for a URL
}

// StaticPods are those that run.
func (f Facts) StaticPods() (list []StaticPod) {
	for i := range f.Sandboxes {
		if s := &f.Sandboxes[i]; s.Static() {
			pod := StaticPod{Namespace: s.Namespace, Name: s.Name, Sandbox: s.ID}
			if s.Source == "file" {
				pod.folder, pod.files = f.Now.StaticPodFolder(), f.digestsOf(s.Namespace+"/"+s.Name)
			}
			list = append(list, pod)
		}
	}
	return list
}

// digestsOf returns what the files of a static pod contain.
func (f Facts) digestsOf(key string) (digests string) {
	for _, m := range f.manifestsOf(f.Now, key) {
		digests += m.Digest + " "
	}
	return digests
}

// EndedIn reports whether a restart has ended the pod, by the facts after it. One whose files were changed or removed
// in between was ended because of that.
func (s StaticPod) EndedIn(after Facts) bool {
	if after.Sandboxes == nil {
		return false
	}
	for i := range after.Sandboxes {
		if after.Sandboxes[i].ID == s.Sandbox {
			return false
		}
	}
	return s.folder != after.Now.StaticPodFolder() || s.files == after.digestsOf(s.Namespace+"/"+s.Name)
}
