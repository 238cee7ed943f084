package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A row is a change on a node. What is not said is as machine, nodeWith and sevenPods have it.
type row struct {
	name      string
	now, then []func(*Configuration)
	pods      []corev1.Pod
	node      func(*corev1.Node)
	host      func(*Host)

	losses  string // NAME:REASON, with ? where it is not certain and + where the containers begin anew
	anyway  string
	static  string
	least   int // where it is not the number of certain losses
	unknown string

	overfull string // fields of limits that are below what is in use
}

func (r row) forecast(t *testing.T) Forecast {
	t.Helper()
	f := Facts{Now: configuration(r.now...), Then: configuration(slices.Concat(r.now, r.then)...), Pods: r.pods, Host: machine()}
	f.Node = nodeWith(t, f.Now)
	if f.Pods == nil {
		f.Pods = sevenPods()
	}
	if r.node != nil {
		r.node(f.Node)
	}
	if r.host != nil {
		r.host(&f.Host)
	}
	return Of(f)
}

func lines(losses []Loss) string {
	var words []string
	for _, l := range losses {
		word := l.Name + ":" + l.Reason
		if !l.Certain {
			word += "?"
		}
		if l.Restarted {
			word += "+"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func whats(list []Unknown) string {
	var words []string
	for _, u := range list {
		words = append(words, u.What)
	}
	return strings.Join(words, ", ")
}

func (r row) check(t *testing.T) {
	got := r.forecast(t)
	for _, part := range []struct{ name, got, want string }{
		{"losses", lines(got.Losses), r.losses}, {"anyway", lines(got.Anyway), r.anyway}, {"static", lines(got.Static), r.static}, {"unknown", whats(slices.Concat(got.Missing, got.Doubts)), r.unknown},
	} {
		if part.got != part.want {
			t.Errorf("%s are %q, want %q\n%+v", part.name, part.got, part.want, got)
		}
	}
	var fields []string
	for _, o := range got.Cgroups {
		fields = append(fields, o.Field)
	}
	if of := strings.Join(fields, ", "); of != r.overfull || got.Harm() < len(fields) {
		t.Errorf("too low are %q, want %q; the harm is %d", of, r.overfull, got.Harm())
	}
	least := r.least
	if least == 0 {
		for _, l := range got.Losses {
			if l.Certain {
				least++
			}
		}
	}
	if got.Least != least {
		t.Errorf("at least %d are lost, want %d", got.Least, least)
	}
	for _, l := range slices.Concat(got.Losses, got.Anyway, got.Static) {
		if l.Why == "" || strings.Count(l.Why, "; but which pod is not certain") > 1 {
			t.Errorf("%s: no words, or twice the same: %s", l.Name, l.Why)
		}
	}
}

func checkAll(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, r.check)
	}
}

func systemReserved(name, quantity string) func(*Configuration) {
	return func(c *Configuration) { c.SystemReserved = map[string]string{name: quantity} }
}

func hard(signal, threshold string) func(*Configuration) {
	return func(c *Configuration) {
		c.EvictionHard = map[string]string{signal: threshold}
	}
}

func soft(signal, threshold string) func(*Configuration) {
	return func(c *Configuration) {
		c.EvictionSoft = map[string]string{signal: threshold}
	}
}

const everybody = "be1:Evicted be2:Evicted be3:Evicted be4:Evicted bu1:Evicted bu2:Evicted gu1:Evicted"

func TestRoom(t *testing.T) {
	checkAll(t, []row{
		{name: "nothing changes"},
		{name: "the youngest go", then: changes(maxPods(3)), losses: "be4:OutOfpods bu1:OutOfpods bu2:OutOfpods gu1:OutOfpods"},
		{name: "room for all", then: changes(maxPods(7))},
		{name: "pods per core", then: changes(func(c *Configuration) { c.PodsPerCore = 1 }), losses: "bu1:OutOfpods bu2:OutOfpods gu1:OutOfpods"},
		{name: "more pods per core than pods", then: changes(func(c *Configuration) { c.PodsPerCore = 100 })},
		{name: "memory for one of two", then: changes(systemReserved("memory", "6500Mi")), losses: "bu2:OutOfmemory",
			unknown: ""},
		{name: "only the sum counts", now: changes(systemReserved("memory", "2Gi")), then: changes(func(c *Configuration) {
			c.SystemReserved, c.KubeReserved = map[string]string{"memory": "1Gi"}, map[string]string{"memory": "1Gi"}
		})},
		{name: "a hard threshold is reserved", then: changes(hard("memory.available", "30%")), pods: []corev1.Pod{aPod("big", 0, asks("memory", "6Gi"))}, losses: "big:OutOfmemory"},
		{name: "CPU", then: changes(systemReserved("cpu", "3100m")), losses: "gu1:OutOfcpu"},
		{name: "reserved CPUs count instead of what is reserved of them", now: changes(systemReserved("cpu", "3")), then: changes(func(c *Configuration) { c.ReservedSystemCPUs = "0-1" })},
		{name: "reserved CPUs", then: changes(func(c *Configuration) { c.ReservedSystemCPUs = "0-3" }), losses: "gu1:OutOfcpu"},
		{name: "more memory than there is: the kubelet ends before it looks at pods", then: changes(systemReserved("memory", "8200Mi")), unknown: "the configuration that is to run"},
		{name: "all of the CPU is not more", then: changes(systemReserved("cpu", "4")), losses: "gu1:OutOfcpu"},
		{name: "more memory with the hard threshold", then: changes(systemReserved("memory", "8Gi")), unknown: "the configuration that is to run"},
		{name: "more CPU than there is", then: changes(systemReserved("cpu", "4100m")), unknown: "the configuration that is to run"},
		{name: "more local storage than there is", then: changes(systemReserved("ephemeral-storage", "101Gi")), unknown: "the configuration that is to run"},
		{name: "more local storage with the hard threshold", then: changes(systemReserved("ephemeral-storage", "95Gi")), unknown: "the configuration that is to run"},
		{name: "nothing is left", then: changes(systemReserved("cpu", "4")), pods: []corev1.Pod{aPod("a", 0, asks("cpu", "1m"))}, losses: "a:OutOfcpu"},
		{name: "local storage", then: changes(systemReserved("ephemeral-storage", "80Gi")), pods: []corev1.Pod{aPod("a", 0, asks("ephemeral-storage", "8Gi")), aPod("b", 1, asks("ephemeral-storage", "8Gi"))}, losses: "b:OutOfephemeral-storage"},
		{name: "a terminating pod takes room and is no loss", then: changes(maxPods(2)), pods: []corev1.Pod{aPod("a", 0, terminating), aPod("b", 1), aPod("c", 2), aPod("d", 3, terminating)}, losses: "c:OutOfpods"},
		{name: "a pending pod too", then: changes(maxPods(2)), pods: []corev1.Pod{aPod("a", 0, phase(corev1.PodPending)), aPod("b", 1), aPod("c", 2)}, losses: "c:OutOfpods"},
		{name: "a pending pod with a container that runs", then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0), aPod("b", 1, phase(corev1.PodPending), runsContainer)}, losses: "b:OutOfpods"},
		{name: "a pending pod with a container that has started", then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0), aPod("b", 1, phase(corev1.PodPending), func(pod *corev1.Pod) {
			yes := true
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "first"}, {Name: "sidecar", Started: &yes}}
		})}, losses: "b:OutOfpods"},
		{name: "a pending pod whose containers wait", then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0), aPod("b", 1, phase(corev1.PodPending), func(pod *corev1.Pod) {
			no := false
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Started: &no, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
		})}},
		{name: "ended ones do not", then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0, phase(corev1.PodSucceeded)), aPod("b", 1, phase(corev1.PodFailed)), aPod("c", 2)}},
		{name: "a static pod comes first, however young", then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0), aPod("s", 9, static)}, losses: "a:OutOfpods"},
		{name: "more than now, and over it already", now: changes(maxPods(3)), then: changes(maxPods(2)), pods: []corev1.Pod{aPod("a", 0), aPod("b", 1), aPod("c", 2), aPod("d", 3)},
			losses: "c:OutOfpods", anyway: "d:OutOfpods"},
		{name: "what is granted counts, and not what is asked for", then: changes(systemReserved("cpu", "3")), pods: []corev1.Pod{aPod("resized", 0, asks("cpu", "2"), func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResources: quantities([]string{"cpu", "1"})}}
		})}},
		{name: "the Node shows something else", then: changes(maxPods(3)), node: func(n *corev1.Node) { n.Status.Allocatable["pods"] = resource.MustParse("8") }, unknown: "the Node's allocatable pods",
			losses: "be4:OutOfpods bu1:OutOfpods bu2:OutOfpods gu1:OutOfpods"},
		{name: "the Node shows other memory", node: func(n *corev1.Node) { n.Status.Allocatable["memory"] = resource.MustParse("7Gi") }, unknown: "the Node's allocatable memory"},
		{name: "the Node shows other CPU", node: func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("3") }, unknown: "the Node's allocatable cpu"},
		{name: "the Node shows little", node: func(n *corev1.Node) { n.Status.Allocatable["memory"] = resource.MustParse("1") }, unknown: "the Node's allocatable memory"},
		{name: "the Node does not show what is allocatable", node: func(n *corev1.Node) { delete(n.Status.Allocatable, "memory"); delete(n.Status.Allocatable, "cpu") }},
		{name: "devices", pods: []corev1.Pod{aPod("gpu", 0, asks("example.com/gpu", "1"))}, node: func(n *corev1.Node) { n.Status.Allocatable["example.com/gpu"] = resource.MustParse("1") },
			anyway: "gpu:UnexpectedAdmissionError?"},
		{name: "more than any number", then: changes(func(c *Configuration) {
			c.KubeReserved, c.SystemReserved = map[string]string{"cpu": "9E", "memory": "9E"}, map[string]string{"cpu": "9E", "memory": "9E"}
			c.EvictionHard = map[string]string{"memory.available": "9E"}
		}), pods: []corev1.Pod{aPod("bu", 0, asks("memory", "9E")), aPod("gu", 1, guaranteed("1", "1Gi"))}, anyway: "bu:OutOfmemory", unknown: "the configuration that is to run"},
		{name: "devices take their room", then: changes(maxPods(1)), pods: []corev1.Pod{aPod("gpu", 0, asks("example.com/gpu", "1")), aPod("a", 1)},
			node: func(n *corev1.Node) { n.Status.Allocatable["example.com/gpu"] = resource.MustParse("1") }, losses: "a:OutOfpods", anyway: "gpu:UnexpectedAdmissionError?"},
		{name: "devices that are the cluster's", pods: []corev1.Pod{aPod("gpu", 0, asks("example.com/gpu", "1"))}},
	})
}

// A restart finds the machine as it is now, and not as the running kubelet found it. What that costs is lost by any restart.
func TestMachineThatChanged(t *testing.T) {
	big := []corev1.Pod{aPod("small", 0), aPod("big", 1, asks("memory", "8000Mi"))}
	pages := func(megabytes int64) func(*Host) {
		return func(h *Host) { h.HugePages = map[corev1.ResourceName]int64{"hugepages-2Mi": megabytes << 20} }
	}
	withPages := func(n *corev1.Node) {
		n.Status.Capacity["hugepages-2Mi"], n.Status.Allocatable["hugepages-2Mi"] = resource.MustParse("128Mi"), resource.MustParse("128Mi")
		n.Status.Allocatable["memory"] = resource.MustParse("7964Mi")
	}
	checkAll(t, []row{
		{name: "huge pages", pods: big, host: pages(128), anyway: "big:OutOfmemory", unknown: "the Node's capacity hugepages-2Mi"},
		{name: "huge pages, and the change takes memory", then: changes(systemReserved("memory", "100Mi")), pods: []corev1.Pod{aPod("big", 1, asks("memory", "7900Mi"))}, host: pages(128),
			losses: "big:OutOfmemory", unknown: "the Node's capacity hugepages-2Mi"},
		{name: "huge pages that the Node shows", pods: big, node: withPages, anyway: "big:OutOfmemory"},
		{name: "huge pages that go", node: withPages, pods: []corev1.Pod{big[1], aPod("pages", 2, asks("hugepages-2Mi", "64Mi"))}, host: pages(0), anyway: "pages:OutOfhugepages-2Mi",
			unknown: "the Node's capacity hugepages-2Mi"},
		{name: "huge pages of a size that there is not", pods: []corev1.Pod{aPod("pages", 2, asks("hugepages-1Gi", "1Gi"))}, anyway: "pages:OutOfhugepages-1Gi"},
		{name: "less memory", pods: big, host: func(h *Host) { h.MemoryTotal = 7 * gi }, anyway: "big:OutOfmemory", unknown: "the Node's capacity memory"},
		{name: "more memory", then: changes(systemReserved("memory", "1Gi")), pods: big, host: func(h *Host) { h.MemoryTotal = 9 * gi }, unknown: "the Node's capacity memory"},
		{name: "a CPU is offline", pods: []corev1.Pod{aPod("a", 0, asks("cpu", "3500m"))}, host: func(h *Host) { h.CPUs = h.CPUs[:3] }, anyway: "a:OutOfcpu", unknown: "the Node's capacity cpu"},
		{name: "a smaller disk", pods: []corev1.Pod{aPod("a", 0, asks("ephemeral-storage", "80Gi"))}, host: func(h *Host) { h.Storage = 80 * gi }, anyway: "a:OutOfephemeral-storage",
			unknown: "the Node's capacity ephemeral-storage"},
		{name: "as the Node shows", host: func(h *Host) { h.MemoryTotal, h.Storage = 8*gi, 100*gi; pages(0)(h) }},
		{name: "CPUs of the state file are offline", now: changes(staticCPUs("1")), then: changes(maxPods(19)), pods: []corev1.Pod{aPod("a", 0, guaranteed("1", "1Gi")), aPod("b", 1, guaranteed("1", "1Gi"))},
			host: func(h *Host) {
				h.CPUs = h.CPUs[:2]
				h.CPUState = &CPUState{Policy: "static", Shared: []int{0, 3}, Entries: map[string]map[string][]int{"uid-a": {"main": {1}}, "uid-b": {"main": {2}}}}
			}, anyway: "b:UnexpectedAdmissionError", unknown: "the Node's capacity cpu"},
	})
}

func TestTies(t *testing.T) {
	tied := func(changes ...func(*corev1.Pod)) (pods []corev1.Pod) {
		for i := range 4 {
			pods = append(pods, aPod(fmt.Sprintf("t%d", i+1), 5, changes...))
		}
		return append(pods, aPod("young", 9))
	}
	checkAll(t, []row{
		{name: "any of them", then: changes(maxPods(3)), pods: tied(), losses: "t1:OutOfpods? t2:OutOfpods? t3:OutOfpods? t4:OutOfpods? young:OutOfpods", least: 2},
		{name: "all of them fit", then: changes(maxPods(4)), pods: tied(), losses: "young:OutOfpods"},
		{name: "one more of them", now: changes(maxPods(3)), then: changes(maxPods(2)), pods: tied()[:4], losses: "t1:OutOfpods? t2:OutOfpods? t3:OutOfpods? t4:OutOfpods?", least: 1},
		{name: "two more of them", now: changes(maxPods(3)), then: changes(maxPods(1)), pods: tied()[:4], losses: "t1:OutOfpods? t2:OutOfpods? t3:OutOfpods? t4:OutOfpods?", least: 2},
		{name: "as many of them", now: changes(maxPods(3)), then: changes(hard("nodefs.available", "5%")), pods: tied()[:4], anyway: "t1:OutOfpods? t2:OutOfpods? t3:OutOfpods? t4:OutOfpods?"},
		{name: "fewer of them", now: changes(maxPods(2)), then: changes(maxPods(3)), pods: tied()[:4], anyway: "t1:OutOfpods? t2:OutOfpods? t3:OutOfpods? t4:OutOfpods?"},
		{name: "none of them fits", then: changes(systemReserved("memory", "7Gi")), pods: tied(asks("memory", "1Gi")), losses: "t1:OutOfmemory t2:OutOfmemory t3:OutOfmemory t4:OutOfmemory"},
		{name: "small and big", then: changes(systemReserved("memory", "7Gi")), pods: []corev1.Pod{aPod("big", 0, asks("memory", "900Mi")), aPod("small", 0, asks("memory", "500Mi")), aPod("tiny", 0, asks("memory", "300Mi"))},
			losses: "big:OutOfmemory? small:OutOfmemory? tiny:OutOfmemory?", least: 1},
	})
}

// Pods of one second that differ in one thing only are not the same to the kubelet: what one of them is refused for is not said of another.
func TestPodsOfOneSecondThatDiffer(t *testing.T) {
	tolerant := func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	compares := func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "broken", Operator: corev1.TolerationOpLt, Value: "5"}}
	}
	tolerates := func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "broken", Operator: corev1.TolerationOpExists}}
	}
	elsewhere := func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"disk": "hdd"} }
	burstable := func(pod *corev1.Pod) { pod.Status.QOSClass = corev1.PodQOSBurstable }
	rules := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	}
	granted := func(inForce string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResources: pod.Spec.Containers[0].Resources.Requests,
				Resources: &corev1.ResourceRequirements{Requests: quantities([]string{"memory", inForce})}}}
		}
	}
	halves := func(pod *corev1.Pod) {
		guaranteed("1", "512Mi")(pod)
		second := *pod.Spec.Containers[0].DeepCopy()
		second.Name = "second"
		pod.Spec.Containers = append(pod.Spec.Containers, second)
	}
	const gate = "RestartAllContainersOnContainerExits"
	type change = func(*corev1.Pod)
	of := func(one, two, young []change) []corev1.Pod {
		return []corev1.Pod{aPod("t1", 5, one...), aPod("t2", 5, two...), aPod("y1", 9, young...), aPod("y2", 10, young...)}
	}
	checkAll(t, []row{
		{name: "in where they may be", then: changes(maxPods(2)), pods: of([]change{elsewhere}, nil, nil), losses: "y2:OutOfpods", anyway: "t1:NodeAffinity"},
		{name: "in a taint", then: changes(maxPods(2)), pods: of(nil, []change{tolerant}, []change{tolerant}), losses: "y2:OutOfpods", anyway: "t1:TaintToleration",
			node: func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "broken", Effect: corev1.TaintEffectNoExecute}}
			}},
		{name: "in a taint that one may tolerate", then: changes(maxPods(1)), pods: of([]change{compares}, nil, []change{tolerant}), losses: "y1:OutOfpods? y2:OutOfpods", anyway: "t1:TaintToleration? t2:OutOfpods",
			node: func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "broken", Value: "4", Effect: corev1.TaintEffectNoExecute}}
			}},
		{name: "in a taint that one may tolerate and the other does", then: changes(maxPods(2)), pods: of([]change{compares}, []change{tolerates}, []change{tolerates}), losses: "y1:OutOfpods? y2:OutOfpods", anyway: "t1:TaintToleration?",
			node: func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "broken", Value: "4", Effect: corev1.TaintEffectNoExecute}}
			}},
		{name: "in devices", then: changes(maxPods(2)), pods: of([]change{asks("cpu", "100m", "example.com/gpu", "1")}, []change{asks("cpu", "100m")}, nil), losses: "y1:OutOfpods y2:OutOfpods", anyway: "t1:UnexpectedAdmissionError?",
			node: func(n *corev1.Node) { n.Status.Allocatable["example.com/gpu"] = resource.MustParse("1") }},
		{name: "in pressure that one tolerates", then: changes(maxPods(2), soft("memory.available", "6Gi")), pods: of(nil, []change{tolerant}, []change{tolerant}), losses: "t1:Evicted y2:OutOfpods"},
		{name: "in their class", then: changes(maxPods(2), soft("memory.available", "6Gi")), pods: of(nil, []change{burstable}, []change{burstable}), losses: "t1:Evicted y2:OutOfpods"},
		{name: "in memory", then: changes(maxPods(2)), pods: of([]change{asks("memory", "9Gi")}, []change{asks("memory", "1Gi")}, nil), losses: "y2:OutOfpods", anyway: "t1:OutOfmemory"},
		{name: "in CPU", then: changes(maxPods(2)), pods: of([]change{asks("cpu", "5", "memory", "1Gi")}, []change{asks("cpu", "1", "memory", "1Gi")}, nil), losses: "y2:OutOfpods", anyway: "t1:OutOfcpu"},
		{name: "in local storage", then: changes(maxPods(2)), pods: of([]change{asks("ephemeral-storage", "200Gi")}, []change{asks("ephemeral-storage", "1Gi")}, nil), losses: "y2:OutOfpods", anyway: "t1:OutOfephemeral-storage"},
		{name: "in huge pages", then: changes(maxPods(2)), pods: of([]change{asks("cpu", "100m", "hugepages-2Mi", "64Mi")}, []change{asks("cpu", "100m")}, nil), losses: "y2:OutOfpods", anyway: "t1:OutOfhugepages-2Mi"},
		{name: "in what they hold", then: changes(systemReserved("memory", "2400Mi")), pods: []corev1.Pod{aPod("t1", 5, asks("memory", "1Gi")), aPod("t2", 5, asks("memory", "1Gi"), granted("5Gi"))}, losses: "t1:OutOfmemory?"},
		{name: "in what both hold", then: changes(systemReserved("memory", "2400Mi")), pods: []corev1.Pod{aPod("t1", 5, asks("memory", "1Gi"), granted("1100Mi")), aPod("t2", 5, asks("memory", "1Gi"), granted("5Gi"))}, losses: "t1:OutOfmemory?"},
		{name: "in their sysctls", now: changes(func(c *Configuration) { c.AllowedUnsafeSysctl = []string{"net.*"} }), then: changes(maxPods(2), func(c *Configuration) { c.AllowedUnsafeSysctl = nil }),
			pods: of([]change{sysctl("net.core.somaxconn")}, nil, nil), losses: "t1:SysctlForbidden y2:OutOfpods"},
		{name: "in features", then: changes(maxPods(2), func(c *Configuration) { c.FeatureGates = map[string]bool{gate: false} }), pods: of([]change{rules}, nil, nil), losses: "t1:PodFeatureUnsupported y2:OutOfpods", unknown: "featureGates." + gate,
			node: func(n *corev1.Node) {
				n.Status.NodeInfo.KubeletVersion, n.Status.DeclaredFeatures = "v1.36.3", []string{gate}
			}},
		{name: "in their containers", then: changes(maxPods(1), staticCPUs("1", "full-pcpus-only")), pods: of([]change{guaranteed("2", "1Gi")}, []change{halves}, nil), host: built(4, 2, 1),
			losses: "t2:SMTAlignmentError y1:OutOfpods y2:OutOfpods"},
		{name: "in their priority, static ones", then: changes(maxPods(2)), pods: []corev1.Pod{aPod("none", 5, static), aPod("low", 5, static, priority(0)), aPod("crit", 9, priority(systemCritical))}, static: "low:Preempting"},
	})
}

func TestPressure(t *testing.T) {
	full := func(h *Host) { h.NodeFS = &Filesystem{Bytes: Amount{5 * gi, 100 * gi}, Inodes: Amount{5e6, 6e6}} }
	best := "be1:Evicted be2:Evicted be3:Evicted be4:Evicted"
	checkAll(t, []row{
		{name: "disk, hard", then: changes(hard("nodefs.available", "99%")), losses: everybody},
		{name: "disk, soft, whatever its grace period", then: changes(soft("nodefs.available", "60%")), losses: everybody},
		{name: "a quantity", then: changes(soft("imagefs.available", "60Gi")), losses: everybody},
		{name: "inodes", then: changes(soft("nodefs.inodesFree", "90%")), losses: everybody},
		{name: "processes", then: changes(soft("pid.available", "99%")), losses: everybody},
		{name: "100% is none", then: changes(soft("nodefs.available", "100%"))},
		{name: "memory, soft", then: changes(soft("memory.available", "6Gi")), losses: best},
		{name: "memory, hard, goes on", then: changes(hard("memory.available", "60%")), losses: best + " bu1:Evicted? bu2:Evicted? gu1:Evicted?", unknown: "evictionHard.memory.available",
			host: func(h *Host) { h.Memory = &Amount{gi, 8 * gi} }},
		{name: "memory, hard, and one of those that ask for some goes", then: changes(hard("memory.available", "99%")), losses: "bu:Evicted? p:Evicted?", least: 1, unknown: "evictionHard.memory.available",
			pods: []corev1.Pod{aPod("bu", 0, asks("cpu", "100m")), aPod("s", 0, static), aPod("c", 0, asks("cpu", "100m"), priority(systemCritical)), aPod("w", 1, asks("cpu", "100m"), phase(corev1.PodPending)),
				aPod("t", 1, asks("cpu", "100m"), terminating), aPod("p", 2, asks("cpu", "100m"), priority(1000))}},
		{name: "memory, hard, and the class is not told", then: changes(hard("memory.available", "99%")), pods: []corev1.Pod{aPod("a", 0, func(pod *corev1.Pod) { pod.Status.QOSClass = "" })},
			losses: "a:Evicted?", least: 1, unknown: "evictionHard.memory.available"},
		{name: "memory, hard, and nobody may go", then: changes(hard("memory.available", "99%")), pods: []corev1.Pod{aPod("s", 0, static), aPod("c", 0, priority(systemCritical))}, unknown: "evictionHard.memory.available"},
		{name: "memory, hard, and the youngest is critical", then: changes(hard("memory.available", "99%")), pods: []corev1.Pod{aPod("bu", 0, asks("cpu", "100m")), aPod("c", 1, asks("cpu", "100m"), priority(systemCritical))},
			losses: "bu:Evicted?", least: 1, unknown: "evictionHard.memory.available"},
		{name: "memory, hard, met already", now: changes(hard("memory.available", "98%")), then: changes(hard("memory.available", "99%")), pods: []corev1.Pod{aPod("bu", 0, asks("cpu", "100m"))}},
		{name: "memory, hard, near", then: changes(hard("memory.available", "4100Mi")), pods: []corev1.Pod{aPod("bu", 0, asks("cpu", "100m"))}, unknown: "evictionHard.memory.available"},
		{name: "memory, hard, near already", now: changes(hard("memory.available", "4100Mi")), then: changes(hard("memory.available", "99%")), pods: []corev1.Pod{aPod("bu", 0, asks("cpu", "100m"))},
			losses: "bu:Evicted?", least: 1, unknown: "evictionHard.memory.available"},
		{name: "memory, hard, which any restart may relieve", then: changes(hard("memory.available", "99%")), pods: []corev1.Pod{aPod("bu", 0, asks("cpu", "100m")), aPod("gpu", 0, asks("cpu", "100m", "example.com/gpu", "1"))},
			node:   func(n *corev1.Node) { n.Status.Allocatable["example.com/gpu"] = resource.MustParse("1") },
			losses: "bu:Evicted?", anyway: "gpu:UnexpectedAdmissionError?", unknown: "evictionHard.memory.available"},
		{name: "memory, near", then: changes(soft("memory.available", "4100Mi")), losses: "be1:Evicted? be2:Evicted? be3:Evicted? be4:Evicted?"},
		{name: "memory, near, and less room", then: changes(maxPods(3), soft("memory.available", "4100Mi")), least: 4,
			losses: "be1:Evicted? be2:Evicted? be3:Evicted? be4:OutOfpods? bu1:OutOfpods? bu2:OutOfpods? gu1:OutOfpods?"},
		{name: "memory, near already, and less room", now: changes(soft("memory.available", "4100Mi")), then: changes(maxPods(3)),
			losses: "be4:OutOfpods? bu1:OutOfpods? bu2:OutOfpods? gu1:OutOfpods?", anyway: "be1:Evicted? be2:Evicted? be3:Evicted?"},
		{name: "met already", host: full, anyway: everybody},
		{name: "met already, and no more so", host: full, then: changes(hard("nodefs.available", "1%"))},
		{name: "critical ones stay", then: changes(hard("nodefs.available", "99%")), pods: []corev1.Pod{aPod("s", 0, static), aPod("c", 0, priority(systemCritical)), aPod("p", 0, priority(1000))}, losses: "p:Evicted"},
		{name: "memory pressure that is tolerated", then: changes(soft("memory.available", "6Gi")), pods: []corev1.Pod{aPod("daemon", 0, func(pod *corev1.Pod) {
			pod.Spec.Tolerations = []corev1.Toleration{{Key: "node.kubernetes.io/memory-pressure", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
		})}},
		{name: "not measured", then: changes(soft("nodefs.available", "99%")), host: func(h *Host) { h.NodeFS = nil }, unknown: "evictionSoft.nodefs.available"},
		{name: "not measured, and as before", then: changes(maxPods(19)), host: func(h *Host) { *h = Host{} }},
		{name: "class not told", then: changes(soft("memory.available", "6Gi")), pods: []corev1.Pod{aPod("a", 0, func(pod *corev1.Pod) { pod.Status.QOSClass = "" })}, losses: "a:Evicted?",
			unknown: ""},
		{name: "no room for what pods use", then: changes(systemReserved("memory", "7500Mi")), pods: []corev1.Pod{aPod("be", 0)}, host: func(h *Host) { h.PodsMemory = new(int64); *h.PodsMemory = gi }, losses: "be:Evicted?", unknown: "evictionHard.memory.available, the memory limit of all pods"},
		{name: "what pods use is not known", then: changes(systemReserved("memory", "7500Mi")), pods: []corev1.Pod{aPod("be", 0)}, host: func(h *Host) { h.PodsMemory = nil }, unknown: "the memory limit of all pods"},
	})
}

func TestPlaces(t *testing.T) {
	taint := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "broken", Effect: corev1.TaintEffectNoExecute}, {Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	}
	tolerant := func(operator corev1.TolerationOperator) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Tolerations = []corev1.Toleration{{Key: "broken", Operator: operator, Value: "5"}}
		}
	}
	selects := func(value string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"disk": value} }
	}
	checkAll(t, []row{
		{name: "a taint", node: taint, pods: []corev1.Pod{aPod("a", 0), aPod("b", 1, tolerant(corev1.TolerationOpExists)), aPod("s", 2, static)}, anyway: "a:TaintToleration"},
		{name: "a toleration that compares", pods: []corev1.Pod{aPod("a", 0, tolerant(corev1.TolerationOpLt))}, anyway: "a:TaintToleration?", node: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "broken", Value: "4", Effect: corev1.TaintEffectNoExecute}}
		}},
		{name: "a toleration that compares, and a taint that nothing tolerates", pods: []corev1.Pod{aPod("a", 0, tolerant(corev1.TolerationOpLt))}, anyway: "a:TaintToleration", node: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoExecute}, {Key: "broken", Value: "4", Effect: corev1.TaintEffectNoExecute}}
		}},
		{name: "a selector", pods: []corev1.Pod{aPod("a", 0, selects("ssd")), aPod("b", 1, selects("hdd")), aPod("s", 2, static, selects("hdd"))}, anyway: "s:NodeAffinity b:NodeAffinity"},
		{name: "an affinity", pods: []corev1.Pod{aPod("a", 0, func(pod *corev1.Pod) {
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"ssd"}}}}}}}}
		})}, anyway: "a:NodeAffinity"},
		{name: "another operating system, by a label that came later", pods: []corev1.Pod{aPod("a", 0, ofOS("windows")), aPod("b", 1, ofOS("linux")), aPod("s", 2, static, ofOS("windows"))},
			anyway: "s:PodOSSelectorNodeLabelDoesNotMatch a:PodOSSelectorNodeLabelDoesNotMatch"},
		{name: "no room, before it is looked where", then: changes(maxPods(1)), node: taint, pods: []corev1.Pod{aPod("s", 0, static), aPod("a", 0)}, anyway: "a:OutOfpods"},
	})
}

func TestSysctls(t *testing.T) {
	allow := func(patterns ...string) func(*Configuration) {
		return func(c *Configuration) { c.AllowedUnsafeSysctl = patterns }
	}
	checkAll(t, []row{
		{name: "no longer allowed", now: changes(allow("net.core.*")), then: changes(allow()), pods: []corev1.Pod{aPod("a", 0, sysctl("net.core.somaxconn")), aPod("b", 1)}, losses: "a:SysctlForbidden"},
		{name: "by another pattern", now: changes(allow("net.core.*")), then: changes(allow("net.core.somaxconn")), pods: []corev1.Pod{aPod("a", 0, sysctl("net/core/somaxconn"))}},
		{name: "safe", now: changes(allow("net.*")), then: changes(allow()), pods: []corev1.Pod{aPod("a", 0, sysctl("net.ipv4.tcp_syncookies"))}},
		{name: "safe in some kubelets", now: changes(allow("net.*")), then: changes(allow()), pods: []corev1.Pod{aPod("a", 0, sysctl("net.ipv4.tcp_rmem"))}, losses: "a:SysctlForbidden?"},
		{name: "perhaps not, of a critical pod, which certainly cannot be here", pods: []corev1.Pod{aPod("a", 0, priority(systemCritical), sysctl("net.ipv4.tcp_rmem"), func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"disk": "hdd"} })}, anyway: "a:NodeAffinity"},
		{name: "perhaps not, of a critical pod, for which there is a taint", pods: []corev1.Pod{aPod("a", 0, priority(systemCritical), sysctl("net.ipv4.tcp_rmem"))}, anyway: "a:TaintToleration",
			node: func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "broken", Effect: corev1.TaintEffectNoExecute}}
			}},
		{name: "perhaps not, of a critical pod, which makes others go or not", then: changes(maxPods(1)), pods: []corev1.Pod{aPod("a", 0), aPod("c", 1, priority(systemCritical), sysctl("net.ipv4.tcp_rmem"))}, losses: "a:Preempting?", anyway: "c:SysctlForbidden?"},
		{name: "certainly, where pressure may be", now: changes(allow("net.core.*")), then: changes(allow(), soft("memory.available", "4100Mi")), pods: []corev1.Pod{aPod("a", 0, sysctl("net.core.somaxconn"))}, losses: "a:SysctlForbidden"},
		{name: "runs although nothing allows it", pods: []corev1.Pod{aPod("a", 0, sysctl("net.ipv4.tcp_new"))}, anyway: "a:SysctlForbidden?"},
	})
}

func changes(list ...func(*Configuration)) []func(*Configuration) { return list }

// A Node that shows another allocatable than the configuration that runs gives, as it does until the kubelet has said the new one, takes no
// certainty from a loss and hides none.
func TestNodeThatIsBehind(t *testing.T) {
	now := configuration(maxPods(19))
	f := Of(Facts{Now: now, Then: configuration(maxPods(2)), Node: nodeWith(t, configuration(maxPods(20))), Pods: sevenPods(), Host: machine()})
	if f.Harm() != 5 || !f.Known() || f.Sure() || whats(f.Doubts) != "the Node's allocatable pods" {
		t.Errorf("%d are lost: %+v", f.Harm(), f)
	}
}

// What ends at its start admits nobody: its fallback does, and does what any restart would do.
func TestKubeletThatEndsAtItsStart(t *testing.T) {
	much := configuration(systemReserved("memory", "9Gi"))
	of := func(now, then *Configuration) Forecast {
		return Of(Facts{Now: now, Then: then, Node: nodeWith(t, configuration()), Pods: sevenPods(), Host: machine()})
	}
	over := configuration(maxPods(6))
	if f := of(over, much); lines(f.Anyway) != "gu1:OutOfpods" || f.Harm() != 1 || whats(f.Doubts) != "the Node's allocatable pods, the configuration that is to run" {
		t.Errorf("to one that ends: %+v", f)
	}
	elsewhere := configuration(maxPods(1), systemReserved("memory", "9Gi"), func(c *Configuration) { c.StaticPodPath = "/etc/other" })
	f := Of(Facts{Now: configuration(maxPods(1)), Then: elsewhere, Node: nodeWith(t, configuration(maxPods(1))), Pods: []corev1.Pod{aPod("a", 0)}, Host: machine(), Manifests: in("/etc/other", aManifest("s.yaml", "s"))})
	if len(f.Losses)+len(f.Anyway)+len(f.Static) > 0 || whats(f.Doubts) != "the configuration that is to run" {
		t.Errorf("to one that ends and reads other static pods: %+v", f)
	}
	if f := of(much, over); lines(f.Losses) != "gu1:OutOfpods" || len(f.Anyway) > 0 || !strings.Contains(whats(f.Doubts), "the configuration that runs") {
		t.Errorf("from one that would end: %+v", f)
	}
}

// A drained node still has the pods of its DaemonSets, and its static ones.
func TestHarm(t *testing.T) {
	ofDaemonSet := controlledBy("DaemonSet")
	moved := func(c *Configuration) { c.CgroupRoot = "/other" }
	elsewhere := func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"disk": "hdd"} }
	for _, row := range []struct {
		name string
		then *Configuration
		pods []corev1.Pod
		want int
		lost string
	}{
		{"pods over the limit", configuration(maxPods(1)), []corev1.Pod{aPod("a", 0), aPod("b", 1), aPod("c", 2)}, 2, "b:OutOfpods c:OutOfpods"},
		{"pods of a DaemonSet over the limit", configuration(maxPods(1)), []corev1.Pod{aPod("a", 0, ofDaemonSet), aPod("b", 1, ofDaemonSet)}, 1, "b:OutOfpods"},
		{"containers that begin anew", configuration(moved), []corev1.Pod{aPod("a", 0), aPod("b", 1, ofDaemonSet)}, 1, "a:CgroupRoot+"},
		{"a drained node", configuration(moved), []corev1.Pod{aPod("a", 0, ofDaemonSet), aPod("b", 1, ofDaemonSet)}, 0, ""},
		{"a drained node with a static pod", configuration(moved), []corev1.Pod{aPod("a", 0, ofDaemonSet), aPod("b", 1, static)}, 1, "b:CgroupRoot+"},
		{"any restart", configuration(), []corev1.Pod{aPod("a", 0, elsewhere), aPod("b", 1)}, 1, "a:NodeAffinity"},
		{"any restart, a static pod", configuration(), []corev1.Pod{aPod("a", 0, elsewhere, static), aPod("b", 1)}, 1, "a:NodeAffinity"},
		{"any restart and the change", configuration(maxPods(1)), []corev1.Pod{aPod("a", 0, elsewhere), aPod("b", 1), aPod("c", 2)}, 2, "c:OutOfpods a:NodeAffinity"},
		{"any restart, and containers that begin anew", configuration(moved), []corev1.Pod{aPod("a", 0, elsewhere), aPod("b", 1)}, 2, "b:CgroupRoot+ a:NodeAffinity"},
		{"the number is certain", configuration(maxPods(1)), []corev1.Pod{aPod("a", 0), aPod("b", 0)}, 1, "a:OutOfpods? b:OutOfpods?"},
		{"who goes for a doubt of its own makes room", configuration(maxPods(1)), []corev1.Pod{aPod("gpu", 0, sysctl("net.ipv4.tcp_rmem")), aPod("b", 1)}, 0, ""},
		{"one of those that ask for memory", configuration(hard("memory.available", "99%")), []corev1.Pod{aPod("a", 0, asks("cpu", "100m")), aPod("b", 1, asks("cpu", "100m"))}, 1, "a:Evicted? b:Evicted?"},
		{"all that ask for none, and perhaps more", configuration(hard("memory.available", "99%")), []corev1.Pod{aPod("a", 0, asks("cpu", "100m")), aPod("b", 1)}, 1, "b:Evicted"},
		{"one may go, as far as is known", configuration(hard("memory.available", "4100Mi")), []corev1.Pod{aPod("a", 0, asks("cpu", "100m"))}, 0, ""},
		{"a doubt", configuration(soft("memory.available", "4100Mi")), []corev1.Pod{aPod("a", 0)}, 0, ""},
		{"nothing", configuration(), []corev1.Pod{aPod("a", 0)}, 0, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			now := configuration()
			f := Of(Facts{Now: now, Then: row.then, Node: nodeWith(t, now), Pods: row.pods, Host: machine()})
			if got := f.Harm(); got != row.want || lines(f.Lost()) != row.lost || !f.Known() {
				t.Errorf("got %d, %s, want %d, %s: %+v", got, lines(f.Lost()), row.want, row.lost, f)
			}
		})
	}
}
