package forecast

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const manifests = "/etc/kubernetes/manifests"

// mirrored is the object in the API of a static pod that a manifest called so has.
func mirrored(name string, changes ...func(*corev1.Pod)) corev1.Pod {
	return aPod(name+"-n1", 0, slices.Insert(changes, 0, func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{SourceAnnotation: "file", mirrorAnnotation: "hash-" + name}
	})...)
}

// ran is the sandbox of a static pod.
func ran(name string) Sandbox {
	return Sandbox{ID: "box-" + name, Namespace: "default", Name: name + "-n1", UID: "hash-" + name, Source: "file",
		Labels: map[string]string{"app": name}, Annotations: map[string]string{"v": "1"}}
}

func fromAPI(name string) Sandbox {
	return Sandbox{ID: "box-" + name, Namespace: "default", Name: name, UID: "uid-" + name, Source: "api"}
}

// aManifest is a file with a pod.
func aManifest(file, name string, changes ...func(*corev1.Pod)) Manifest {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	pod.Namespace, pod.Name, pod.Labels, pod.Annotations = "default", name, map[string]string{"app": name}, map[string]string{"v": "1"}
	for _, change := range changes {
		change(pod)
	}
	return Manifest{File: file, Pod: pod}
}

func in(folder string, files ...Manifest) map[string][]Manifest {
	all := map[string][]Manifest{}
	for _, m := range files {
		if m.File != "" {
			m.File = folder + "/" + m.File
			all[folder] = append(all[folder], m)
		}
	}
	if all[folder] == nil {
		all[folder] = []Manifest{}
	}
	return all
}

// The kubelet's pods are those of the container runtime and of its files, not those of the API alone.
func TestStaticPods(t *testing.T) {
	noPath := func(c *Configuration) { c.StaticPodPath = "" }
	otherPath := func(c *Configuration) { c.StaticPodPath = "/etc/other" }
	version2 := func(pod *corev1.Pod) { pod.Annotations = map[string]string{"v": "2"} }
	url := func(c *Configuration) { c.StaticPodURL = "http://a" }
	served := func(s Sandbox) Sandbox { s.Source = "http"; return s }
	for name, row := range map[string]struct {
		now, then []func(*Configuration)
		pods      []corev1.Pod
		sandboxes []Sandbox
		files     map[string][]Manifest

		terminating bool

		losses, static, doubts string
		anyway                 string
		detail                 string
	}{
		"a mirror, and nothing changes":   {pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s"))},
		"no mirror, and nothing changes":  {sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s"))},
		"no mirror, and the folder goes":  {then: changes(noPath), sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s")), static: "s-n1:StaticPodPath"},
		"no mirror, and another folder":   {then: changes(otherPath), sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s")), static: "s-n1:StaticPodPath"},
		"no mirror, and no file was read": {then: changes(noPath), sandboxes: []Sandbox{ran("s")}, static: "s-n1:StaticPodPath", doubts: "static pod default/s-n1"},
		"no mirror, and the URL goes": {now: changes(url), then: changes(func(c *Configuration) { c.StaticPodURL = "" }), sandboxes: []Sandbox{served(ran("s"))},
			static: "s-n1:StaticPodURL", doubts: "static pod default/s-n1"},
		"another URL than that of a pod that runs": {now: changes(url), then: changes(func(c *Configuration) { c.StaticPodURL = "http://b" }), pods: []corev1.Pod{aPod("a", 0), aPod("h", 0, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{SourceAnnotation: "http", mirrorAnnotation: "h"}
		})}, static: "h:StaticPodURL", doubts: "staticPodURL"},
		"a URL that goes makes room": {now: changes(url), then: changes(maxPods(1), func(c *Configuration) { c.StaticPodURL = "" }), pods: []corev1.Pod{aPod("a", 0), aPod("h", 0, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{SourceAnnotation: "http", mirrorAnnotation: "h"}
		})}, static: "h:StaticPodURL"},
		"another URL": {now: changes(url), then: changes(func(c *Configuration) { c.StaticPodURL = "http://b" }), sandboxes: []Sandbox{}, doubts: "staticPodURL"},
		"a mirror and a sandbox are one pod": {then: changes(noPath), pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s")),
			static: "s-n1:StaticPodPath"},
		"the runtime cannot be asked, and the folder goes": {then: changes(noPath), files: in(manifests, aManifest("s.yaml", "s")), static: "s-n1:StaticPodPath"},
		"a file whose pod does not run":                    {then: changes(noPath), sandboxes: []Sandbox{}, files: in(manifests, aManifest("s.yaml", "s")), doubts: manifests + "/s.yaml"},

		"two files of one pod": {pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s"), aManifest("s.yaml.backup", "s", version2)),
			static: "s-n1:StaticPodTwice", detail: "s.yaml and s.yaml.backup"},
		"two files of one pod, and the folder goes":            {then: changes(noPath), pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s"), aManifest("s.yaml~", "s")), static: "s-n1:StaticPodPath"},
		"a mirror that shows a pod which the runtime does not": {then: changes(noPath), pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{}, files: in(manifests, aManifest("s.yaml", "s")), static: "s-n1:StaticPodPath"},
		"a URL that goes, and no room": {now: changes(url), then: changes(maxPods(0), func(c *Configuration) { c.StaticPodURL = "" }), pods: []corev1.Pod{aPod("a", 0), aPod("h", 0, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{SourceAnnotation: "http", mirrorAnnotation: "h"}
		})}, losses: "a:OutOfpods", static: "h:StaticPodURL"},
		"two files of one pod, without a mirror": {sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s"), aManifest("s.yaml~", "s")), static: "s-n1:StaticPodTwice", detail: "s.yaml and s.yaml~"},
		"two files of one pod, which is ending": {pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{}, terminating: true, files: in(manifests, aManifest("s.yaml", "s"), aManifest("s.yaml~", "s")),
			static: "s-n1:StaticPodTwice"},
		"two files of one pod, which is not there":      {sandboxes: []Sandbox{}, files: in(manifests, aManifest("s.yaml", "s"), aManifest("s.yaml~", "s")), static: "s-n1:StaticPodTwice"},
		"one name in two namespaces":                    {sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s"), aManifest("t.yaml", "s", func(pod *corev1.Pod) { pod.Namespace = "other" })), doubts: manifests + "/t.yaml"},
		"no file of a pod":                              {pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{ran("s")}, files: in(manifests), static: "s-n1:StaticPodGone"},
		"no file of a pod, of those that could be read": {pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, Manifest{File: "huge.yaml"}), static: "s-n1:StaticPodGone?", detail: "huge.yaml cannot be read"},
		"a folder that was not read":                    {pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{ran("s")}},
		"an edit that was not taken":                    {pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s", version2)), static: "s-n1:StaticPodChanged", detail: "s.yaml"},
		"a label that was edited":                       {pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s", func(pod *corev1.Pod) { pod.Labels["app"] = "t" })), static: "s-n1:StaticPodChanged", detail: "s.yaml"},
		"an edit of a pod with a uid":                   {pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s", version2, func(pod *corev1.Pod) { pod.UID = "hash-s" }))},
		"what the kubelet has the last word on": {pods: []corev1.Pod{mirrored("s")}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s", func(pod *corev1.Pod) {
			pod.Annotations["kubernetes.io/config.hash"], pod.Labels["io.kubernetes.pod.uid"] = "x", "x"
		}))},
		"a pod of a URL needs no file": {now: changes(url), pods: []corev1.Pod{mirrored("s"), aPod("h", 0, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{SourceAnnotation: "http", mirrorAnnotation: "h"}
		})}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s"))},
		"a mirror of an older manifest": {pods: []corev1.Pod{aPod("s-n1", 0, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{SourceAnnotation: "file", mirrorAnnotation: "older"}
		})}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s"))},

		"room without a mirror": {then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0)}, sandboxes: []Sandbox{fromAPI("a"), ran("s")}, files: in(manifests, aManifest("s.yaml", "s")), losses: "a:OutOfpods"},
		"memory without a mirror": {then: changes(func(c *Configuration) { c.SystemReserved = map[string]string{"memory": "4Gi"} }), pods: []corev1.Pod{aPod("a", 0, asks("memory", "2Gi"))}, sandboxes: []Sandbox{fromAPI("a"), ran("s")},
			files: in(manifests, aManifest("s.yaml", "s", asks("memory", "3Gi"))), losses: "a:OutOfmemory"},
		"room of a folder that goes":  {then: changes(noPath, maxPods(1)), pods: []corev1.Pod{aPod("a", 0), mirrored("s")}, sandboxes: []Sandbox{fromAPI("a"), ran("s")}, files: in(manifests, aManifest("s.yaml", "s")), static: "s-n1:StaticPodPath"},
		"room of a folder that comes": {now: changes(noPath), then: changes(otherPath, maxPods(1)), pods: []corev1.Pod{aPod("a", 0)}, sandboxes: []Sandbox{fromAPI("a")}, files: in("/etc/other", aManifest("s.yaml", "s")), losses: "a:OutOfpods"},

		"room of one that does not run": {then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0)}, sandboxes: []Sandbox{fromAPI("a")}, files: in(manifests, aManifest("s.yaml", "s")),
			losses: "a:OutOfpods", doubts: manifests + "/s.yaml"},
		"CPU of one that has ended": {pods: []corev1.Pod{aPod("a", 0, asks("cpu", "3")), mirrored("s", phase(corev1.PodSucceeded))}, sandboxes: []Sandbox{fromAPI("a")}, files: in(manifests, aManifest("s.yaml", "s", asks("cpu", "3"))),
			anyway: "a:OutOfcpu", doubts: manifests + "/s.yaml"},

		"the port of one that does not run": {pods: []corev1.Pod{aPod("a", 0, hasPort(80, "")), aPod("b", 1, hasPort(81, ""))}, sandboxes: []Sandbox{fromAPI("a"), fromAPI("b")},
			files: in(manifests, aManifest("s.yaml", "s", hasPort(80, "127.0.0.1"))), anyway: "a:NodePorts", doubts: manifests + "/s.yaml"},
		"the port of one that does not run, of another address": {pods: []corev1.Pod{aPod("a", 0, hasPort(80, "192.0.2.1"))}, sandboxes: []Sandbox{fromAPI("a")},
			files: in(manifests, aManifest("s.yaml", "s", hasPort(80, "127.0.0.1"))), doubts: manifests + "/s.yaml"},

		"a mirror that was made again": {then: changes(noPath), pods: []corev1.Pod{mirrored("s", phase(corev1.PodPending))}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s")), static: "s-n1:StaticPodPath"},
		"a mirror that is deleted":     {then: changes(noPath), pods: []corev1.Pod{mirrored("s", terminating)}, sandboxes: []Sandbox{ran("s")}, files: in(manifests, aManifest("s.yaml", "s")), static: "s-n1:StaticPodPath"},
		"a mirror that is deleted, of an older manifest": {then: changes(noPath), pods: []corev1.Pod{mirrored("s", terminating, func(pod *corev1.Pod) { pod.Annotations[mirrorAnnotation] = "older" })}, sandboxes: []Sandbox{ran("s")},
			files: in(manifests, aManifest("s.yaml", "s")), static: "s-n1:StaticPodPath"},
		"a mirror that is deleted, and the runtime does not say the source": {then: changes(func(c *Configuration) { c.CgroupRoot = "/other" }), pods: []corev1.Pod{mirrored("s", terminating)},
			sandboxes: []Sandbox{{ID: "box", Namespace: "default", Name: "s-n1", UID: "hash-s"}}, static: "s-n1:CgroupRoot+"},
		"a mirror that is deleted, and the runtime cannot be asked": {then: changes(noPath), pods: []corev1.Pod{mirrored("s", terminating)}, files: in(manifests, aManifest("s.yaml", "s")), static: "s-n1:StaticPodPath"},
		"a mirror that is deleted, and nothing runs":                {then: changes(noPath), pods: []corev1.Pod{mirrored("s", terminating)}, sandboxes: []Sandbox{}, files: in(manifests, aManifest("s.yaml", "s"))},

		"a pod that the API does not list": {pods: []corev1.Pod{}, sandboxes: []Sandbox{fromAPI("a")}, doubts: "pod default/a"},
		"a pod that the API calls Pending and the runtime runs": {then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0), aPod("b", 1, phase(corev1.PodPending))},
			sandboxes: []Sandbox{fromAPI("a"), fromAPI("b")}, losses: "b:OutOfpods"},
		"a pod that the API calls Pending, and nothing runs": {then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0), aPod("b", 1, phase(corev1.PodPending))}, sandboxes: []Sandbox{fromAPI("a")}},
		"a pod that runs and is about to end": {then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0), aPod("b", 1, phase(corev1.PodPending), terminating), aPod("c", 1, terminating)},
			sandboxes: []Sandbox{fromAPI("a"), fromAPI("b"), fromAPI("c")}},
		"a pod that is about to end has a list": {pods: []corev1.Pod{aPod("a", 0, terminating)}, sandboxes: []Sandbox{fromAPI("a")}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Now: configuration(row.now...), Then: configuration(append(row.now, row.then...)...), Pods: row.pods, Host: machine(), Sandboxes: row.sandboxes, Manifests: row.files}
			f.Node = nodeWith(t, f.Now)
			if f.Pods == nil {
				f.Pods = []corev1.Pod{}
			}
			if row.terminating {
				terminating(&f.Pods[0])
			}
			got := Of(f)
			if lines(got.Losses) != row.losses || lines(got.Static) != row.static || lines(got.Anyway) != row.anyway || whats(got.Doubts) != row.doubts || !got.Known() {
				t.Errorf("losses %q, static %q, anyway %q, doubts %q; want losses %q, static %q, anyway %q, doubts %q; %v",
					lines(got.Losses), lines(got.Static), lines(got.Anyway), whats(got.Doubts), row.losses, row.static, row.anyway, row.doubts, got.Doubts)
			}
			for _, l := range got.Static {
				if l.Why == "" || l.Namespace != "default" || l.UID == "" && f.Sandboxes != nil && len(f.Sandboxes) > 0 {
					t.Errorf("a loss without words or a name: %+v", l)
				}
			}
			if row.detail != "" && !strings.Contains(got.Sentence(5), row.detail+")") {
				t.Errorf("the sentence lacks %q: %s", row.detail, got.Sentence(5))
			}
		})
	}
}

// The state files know a static pod by the uid that its kubelet has made, which its object in the API does not have.
func TestStaticPodsKeepTheirCPUs(t *testing.T) {
	pod := mirrored("s")
	guaranteed("2", "64Mi")(&pod)
	now := configuration(func(c *Configuration) { c.CPUManagerPolicy, c.ReservedSystemCPUs = "static", "0" })
	host := machine()
	host.CPUState = &CPUState{Policy: "static", Shared: []int{0, 1}, Entries: map[string]map[string][]int{"hash-s": {"main": {2, 3}}}}
	if got := Of(Facts{Now: now, Then: now, Node: nodeWith(t, now), Pods: []corev1.Pod{pod}, Host: host}); lines(got.Anyway) != "" || lines(got.Static) != "" {
		t.Errorf("anyway %q, static %q", lines(got.Anyway), lines(got.Static))
	}
}

func TestDecodeManifest(t *testing.T) {
	for text, want := range map[string]string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}`:                                                                                                                                     "default/a BestEffort 0 0",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"250m"}}}]}}`:                                                                             "n/a Burstable 250m 0",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":"64Mi"}}}]}}`:                                                                                  "default/a Guaranteed 1 64Mi",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":"64Mi"},"requests":{"cpu":"500m"}}}]}}`:                                                        "default/a Burstable 500m 64Mi",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"initContainers":[{"name":"i"}],"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":"64Mi"}}}]}}`:                                                  "default/a Burstable 1 64Mi",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"}}}]}}`:                                                                                                  "default/a Burstable 1 0",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"limits":{"memory":"1Mi"}}}]}}`:                                                                                             "default/a Burstable 0 1Mi",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1","memory":"1Mi"}}}]}}`:                                                                                 "default/a Burstable 1 1Mi",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"0","memory":"0"}}}]}}`:                                                                                     "default/a BestEffort 0 0",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"0","memory":"0"}}}]}}`:                                                                                   "default/a BestEffort 0 0",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"0"},"limits":{"cpu":"1"}}}]}}`:                                                                           "default/a Burstable 0 0",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":"0"}}}]}}`:                                                                                     "default/a Burstable 1 0",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1","memory":"0"},"limits":{"cpu":"1"}}}]}}`:                                                              "default/a Burstable 1 0",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"resources":{"limits":{"cpu":"2"}},"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":"1Mi"}}}]}}`:                                                "default/a Burstable 1 1Mi",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"resources":{"limits":{"cpu":"2"}},"containers":[{"name":"c"}]}}`:                                                                                                  "default/a Burstable 0 0",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"initContainers":[{"name":"i","resources":{"limits":{"cpu":"2","memory":"1Mi"}}}],"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":"1Mi"}}}]}}`: "default/a Guaranteed 1 1Mi",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":""}}`:                                                                          "",
		`{"apiVersion":"v1","kind":"Deployment","metadata":{"name":"a"}}`:                                                                  "",
		`{"apiVersion":"v2","kind":"Pod","metadata":{"name":"a"}}`:                                                                         "",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"x"}}}]}}`: "",
		`[]`: "",
	} {
		pod, err := DecodeManifest([]byte(text))
		if want == "" {
			if err == nil || pod != nil {
				t.Errorf("%s is read as %+v", text, pod)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		requests := pod.Spec.Containers[0].Resources.Requests
		if got := pod.Namespace + "/" + pod.Name + " " + string(pod.Status.QOSClass) + " " + requests.Cpu().String() + " " + requests.Memory().String(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// What tells one manifest from another is kept, and an init container asks for its limits, too.
func TestWhatIsKeptOfAManifest(t *testing.T) {
	pod, err := DecodeManifest([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"app":"a"},"annotations":{"v":"1"}},"spec":{"initContainers":[{"name":"i","resources":{"limits":{"cpu":"2"}}}],"containers":[{"name":"c"}]}}`))
	if err != nil || pod.Labels["app"] != "a" || pod.Annotations["v"] != "1" || pod.Spec.InitContainers[0].Resources.Requests.Cpu().String() != "2" {
		t.Errorf("%+v, %v", pod, err)
	}
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"a":"b"}},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"}}}]}}`))
	now := configuration()
	f.Fuzz(func(t *testing.T, text []byte) {
		pod, err := DecodeManifest(text)
		if (err == nil) != (pod != nil) {
			t.Fatalf("%v, %v", pod, err)
		}
		if pod == nil {
			return
		}
		facts := Facts{Now: now, Then: configuration(func(c *Configuration) { c.StaticPodPath = "" }), Node: nodeWith(t, now), Pods: sevenPods(), Host: machine(),
			Manifests: map[string][]Manifest{manifests: {{File: manifests + "/a", Pod: pod}}}}
		if got := Of(facts); len(got.Static) != 1 || got.Static[0].Name == "" {
			t.Errorf("%+v", got)
		}
	})
}

// Whether a static pod was ended by a restart shows in its sandbox, where its files are as they were.
func TestStaticPodsThatEnded(t *testing.T) {
	one, two := aManifest("s.yaml", "s"), aManifest("s.yaml", "s")
	one.Digest, two.Digest = "1", "2"
	other := ran("s")
	other.ID = "later"
	elsewhere := configuration(func(c *Configuration) { c.StaticPodPath = "/etc/other" })
	for name, row := range map[string]struct {
		then      *Configuration
		sandboxes []Sandbox
		files     map[string][]Manifest
		want      bool
	}{
		"it runs on":                   {configuration(), []Sandbox{ran("s")}, in(manifests, one), false},
		"another one runs":             {configuration(), []Sandbox{other}, in(manifests, one), true},
		"none runs":                    {configuration(), []Sandbox{}, in(manifests, one), true},
		"its file was edited":          {configuration(), []Sandbox{other}, in(manifests, two), false},
		"its file was removed":         {configuration(), []Sandbox{}, in(manifests), false},
		"another folder":               {elsewhere, []Sandbox{}, in("/etc/other", one), true},
		"another folder, another file": {elsewhere, []Sandbox{}, in("/etc/other", two), true},
		"the runtime says nothing":     {configuration(), nil, in(manifests, one), false},
	} {
		before := Facts{Now: configuration(), Node: nodeWith(t, configuration()), Sandboxes: []Sandbox{ran("s"), fromAPI("a")}, Manifests: in(manifests, one)}.StaticPods()
		if len(before) != 1 || before[0].Name != "s-n1" {
			t.Fatalf("%+v", before)
		}
		after := Facts{Now: row.then, Node: nodeWith(t, configuration()), Sandboxes: row.sandboxes, Manifests: row.files}
		if got := before[0].EndedIn(after); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
