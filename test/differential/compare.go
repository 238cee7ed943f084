package differential

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

// Facts are those from which a supervisor makes its forecast. Blind leaves out what cannot be measured everywhere.
func (c Case) Facts(r Result, blind bool) (forecast.Facts, error) {
	f := forecast.Facts{Node: &r.Node, Pods: []corev1.Pod{}}
	var err error
	if f.Now, err = forecast.DecodeConfiguration(r.Now); err != nil {
		return f, err
	}
	if f.Then, err = forecast.DecodeConfiguration(r.Then); err != nil {
		return f, err
	}
	for i := range c.Pods {
		if slices.Contains(r.Running, c.Pods[i].Name) {
			f.Pods = append(f.Pods, c.Pods[i])
		}
	}
	f.Host = c.Later.host()
	if f.Host.CPUState, err = read(r.CPUState, forecast.DecodeCPUState); err != nil {
		return f, err
	}
	if f.Host.MemoryState, err = read(r.MemoryState, forecast.DecodeMemoryState); err != nil {
		return f, err
	}
	if blind {
		f.Host.CPUs, f.Host.NUMANodes = nil, nil
	}
	return f, nil
}

func read[state any](text string, decode func([]byte) (*state, error)) (*state, error) {
	if text == "" {
		return new(state), nil
	}
	return decode([]byte(text))
}

func (m Machine) host() forecast.Host {
	h := forecast.Host{CgroupVersion: 2, CgroupDriver: "systemd", Storage: m.Storage, HugePages: map[corev1.ResourceName]int64{}, PodsMemory: &m.Free.PodsMemory,
		Memory:  &forecast.Amount{Available: m.Free.Memory, Capacity: m.Capacity.Memory},
		PIDs:    &forecast.Amount{Available: m.Free.PIDs, Capacity: m.Capacity.PIDs},
		NodeFS:  &forecast.Filesystem{Bytes: forecast.Amount{Available: m.Free.NodeFS, Capacity: m.Capacity.NodeFS}, Inodes: forecast.Amount{Available: m.Free.NodeInodes, Capacity: m.Capacity.NodeInodes}},
		ImageFS: &forecast.Filesystem{Bytes: forecast.Amount{Available: m.Free.ImageFS, Capacity: m.Capacity.ImageFS}, Inodes: forecast.Amount{Available: m.Free.ImageInodes, Capacity: m.Capacity.ImageInodes}}}
	for _, c := range m.CPUs {
		h.CPUs = append(h.CPUs, forecast.CPU{ID: c.ID, Core: c.Core, Socket: c.Socket, Node: c.Node})
	}
	for _, n := range m.Nodes {
		node := forecast.NUMANode{ID: n.ID, Memory: n.Memory, HugePages: map[corev1.ResourceName]int64{}}
		for name, bytes := range n.HugePages {
			node.HugePages[corev1.ResourceName(name)] = bytes
			h.HugePages[corev1.ResourceName(name)] += bytes
		}
		h.NUMANodes = append(h.NUMANodes, node)
		h.MemoryTotal += n.Memory
	}
	return h
}

// Faults holds a forecast against what came. A kubelet that ended at its start has touched no pod.
func (c Case) Faults(f forecast.Forecast, r Result) (faults []string) {
	fault := func(format string, arguments ...any) { faults = append(faults, fmt.Sprintf(format, arguments...)) }
	if !f.Known() {
		fault("nothing is known: %v", f.Missing)
		return faults
	}
	said := map[string]forecast.Loss{}
	for _, l := range slices.Concat(f.Losses, f.Static, f.Anyway) {
		said[l.Name] = l
	}
	anyway := map[string]bool{}
	for _, l := range f.Anyway {
		anyway[l.Name] = l.Certain
	}
	for _, restart := range r.Restarts {
		if restart.Ended != "" {
			continue
		}
		lost := c.losses(restart)
		for name, certain := range anyway {
			if lost[name] == "" && certain {
				fault("FALSE: %s is certainly lost by any restart (%s), and it is not: %v", name, said[name].Reason, restart)
			}
		}
		if !restart.Then {
			continue
		}
		notStatic := 0
		for name, word := range lost {
			if _, named := said[name]; !named {
				fault("MISSED: %s is lost (%s): %v", name, word, restart)
			}
			if !c.static(name) {
				notStatic++
			}
		}
		for name, l := range said {
			if l.Certain && lost[name] == "" && !anyway[name] {
				fault("FALSE: %s is certainly lost (%s: %s), and it is not: %v", name, l.Reason, l.Why, restart)
			}
		}
		among := 0
		for _, l := range f.Losses {
			if lost[l.Name] != "" {
				among++
			}
		}
		if notStatic == 0 && c.evicts(r) { // and which one is not known: it may be any of those that f.Losses names
			among, notStatic = among+1, notStatic+1
		}
		if among < f.Least {
			fault("FALSE: at least %d pods are lost by the change, and it is %d: %v", f.Least, among, restart)
		}
		if notStatic < f.LeastOfAll {
			fault("FALSE: at least %d pods are lost, and it is %d: %v", f.LeastOfAll, notStatic, restart)
		}
	}
	return append(faults, c.holdFaults(f, r)...)
}

// holdFaults holds against what came that on which the hold acts: in each order, at least Harm of the pods of Lost go. Lost has a pod that may stay
// only where the certain ones are fewer than Harm. Few orders are tried, so such a pod need not go in one of them.
func (c Case) holdFaults(f forecast.Forecast, r Result) (faults []string) {
	fault := func(format string, arguments ...any) { faults = append(faults, fmt.Sprintf(format, arguments...)) }
	harm, named := f.Harm(), f.Lost()
	certain := 0
	for _, l := range named {
		if l.Certain {
			certain++
		}
		if !slices.Contains(r.Running, l.Name) {
			fault("FALSE: %s holds the change, and it does not run", l.Name)
		}
	}
	if certain > harm || certain == harm && len(named) > certain {
		fault("FALSE: %d pods certainly hold the change, and of %v it is %d", harm, named, certain)
	}
	for _, restart := range r.Restarts {
		if !restart.Then || restart.Ended != "" {
			continue
		}
		lost := c.losses(restart)
		gone := 0
		for _, l := range named {
			if lost[l.Name] != "" {
				gone++
			}
		}
		if gone == 0 && c.evicts(r) {
			gone = 1
		}
		if gone < harm {
			fault("FALSE: %d pods certainly hold the change, and %d of %v go: %v", harm, gone, named, restart)
		}
	}
	return faults
}

// least is how many pods go in each order, static ones too.
func (c Case) least(r Result) int {
	least := len(c.Pods)
	for _, restart := range r.Restarts {
		if restart.Then {
			least = min(least, len(c.losses(restart))) // none, where the kubelet ended at its start
		}
	}
	return least
}

// evicts tells whether the kubelet that is to run evicts a pod after it has admitted all, because a hard threshold of memory is met. The program in
// the folder kubelet does not do that: its eviction manager measures once, before the admission, and has no pods then. So this part of a forecast is
// held against what is read here of the configuration, and not against the kubelet's code.
func (c Case) evicts(r Result) bool {
	var then struct {
		EvictionHard map[string]string `json:"evictionHard"`
	}
	if json.Unmarshal(r.Then, &then) != nil {
		return false
	}
	text := then.EvictionHard["memory.available"]
	threshold, err := resource.ParseQuantity(text)
	limit := threshold.Value()
	if share, is := strings.CutSuffix(text, "%"); is {
		var percent int64
		percent, err = strconv.ParseInt(share, 10, 64)
		limit = c.Later.Capacity.Memory * percent / 100
	}
	return err == nil && c.Later.Free.Memory < limit && slices.ContainsFunc(c.Pods, func(pod corev1.Pod) bool {
		critical := pod.Spec.Priority != nil && *pod.Spec.Priority >= 2000000000
		return slices.Contains(r.Running, pod.Name) && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && !critical && !c.static(pod.Name)
	})
}

// losses are those of pods that run and are not about to end. A static pod runs on while its object in the API is terminating.
func (c Case) losses(r Restart) map[string]string {
	lost := map[string]string{}
	for i := range c.Pods {
		pod := &c.Pods[i]
		if word := r.Lost[pod.Name]; word != "" && pod.Status.Phase == corev1.PodRunning && (pod.DeletionTimestamp == nil || c.static(pod.Name)) {
			lost[pod.Name] = word
		}
	}
	return lost
}

func (c Case) static(name string) bool {
	for i := range c.Pods {
		if c.Pods[i].Name == name {
			_, mirror := c.Pods[i].Annotations[corev1.MirrorPodAnnotationKey]
			return mirror
		}
	}
	return false
}

// String is a case as a person reads it.
func (c Case) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "machine %+v\n", c.Machine)
	if fmt.Sprint(c.Later) != fmt.Sprint(c.Machine) {
		fmt.Fprintf(&b, "later %+v\n", c.Later)
	}
	fmt.Fprintf(&b, "now  %s\nthen %s\ndeleted %v, stale %t\n", c.Now, c.Then, c.Deleted, c.Stale)
	for i := range c.Pods {
		fmt.Fprintln(&b, podLine(&c.Pods[i]))
	}
	return b.String()
}

func podLine(pod *corev1.Pod) string {
	words := []string{pod.Name, string(pod.Status.QOSClass), string(pod.Status.Phase), pod.CreationTimestamp.UTC().Format("05")}
	if pod.Spec.Priority != nil {
		words = append(words, fmt.Sprint("priority ", *pod.Spec.Priority))
	}
	for _, c := range pod.Spec.InitContainers {
		words = append(words, fmt.Sprintf("[%s always=%t %s]", c.Name, c.RestartPolicy != nil, amounts(c.Resources.Requests)))
	}
	for _, c := range pod.Spec.Containers {
		words = append(words, fmt.Sprintf("[%s %s]", c.Name, amounts(c.Resources.Requests)))
	}
	if pod.Spec.SecurityContext != nil {
		words = append(words, fmt.Sprint(pod.Spec.SecurityContext.Sysctls))
	}
	return strings.Join(append(words, fmt.Sprint(pod.Annotations, pod.Spec.NodeSelector)), " ")
}

func amounts(list corev1.ResourceList) string {
	var words []string
	for name, quantity := range list {
		words = append(words, string(name)+"="+quantity.String())
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}
