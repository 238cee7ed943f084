package forecast

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestSentence(t *testing.T) {
	lost := Loss{Namespace: "default", Name: "be1", Reason: "OutOfpods", Certain: true}
	maybe := Loss{Namespace: "default", Name: "be2", Reason: "Evicted"}
	again := Loss{Namespace: "kube-system", Name: "dns", Reason: CgroupRoot, Certain: true, Restarted: true}
	static := Loss{Namespace: "kube-system", Name: "etcd-n1", Reason: StaticPodPath, Certain: true}
	for want, f := range map[string]Forecast{
		"none of 7 running pods would be killed at the restart":                                                                                       {Running: 7},
		"none of 7 running pods would be killed at the restart; of static pods: kube-system/etcd-n1 (StaticPodPath)":                                  {Running: 7, Static: []Loss{static}},
		"none of 7 running pods would be killed by the change; any restart would kill, with the configuration that runs too: default/be1 (OutOfpods)": {Running: 7, Anyway: []Loss{lost}},
		"none of 7 running pods is known to be killed at the restart":                                                                                 {Running: 7, Doubts: []Unknown{{"featureGates.X", "it is not known"}}},
		"what would happen to running pods is not known: the Node: it is not known":                                                                   {Missing: []Unknown{{"the Node", "it is not known"}}},
		"1 of 7 running pods would be killed at the restart: default/be1 (OutOfpods)":                                                                 {Running: 7, Least: 1, Losses: []Loss{lost}},
		"up to 1 of 7 running pods would be killed at the restart: default/be2 (Evicted?)":                                                            {Running: 7, Losses: []Loss{maybe}},
		"1 or more of 7 running pods would be killed or restarted at the restart: default/be1 (OutOfpods), default/be2 (Evicted?)…":                   {Running: 7, Least: 1, Losses: []Loss{lost, maybe, again}},
		"1 of 1 running pods would be restarted at the restart: kube-system/dns (CgroupRoot)":                                                         {Running: 1, Least: 1, Losses: []Loss{again}},
		"none of 7 running pods would be killed at the restart; cgroup /system.slice would be limited by systemReserved.memory to 27Mi of memory, and uses 30Mi: the kernel would end processes in it, and the kubelet and the container runtime may be in it": {
			Running: 7, Cgroups: []Overfull{{"/system.slice", "systemReserved.memory", 30 << 20, 27 << 20, corev1.ResourceMemory}}},
		"none of 7 running pods would be killed at the restart; cgroup /system.slice would be limited by systemReserved.pid to 5 processes and threads, and has 20: none could begin in it, and the kubelet and the container runtime may be in it": {
			Running: 7, Cgroups: []Overfull{{"/system.slice", "systemReserved.pid", 20, 5, "pid"}}},
		"1 of 7 running pods would be killed at the restart: default/be1 (OutOfpods); any restart would kill, with the configuration that runs too: default/be2 (Evicted?)": {Running: 7, Least: 1, Losses: []Loss{lost}, Anyway: []Loss{maybe}, Doubts: []Unknown{{"x", "y"}}},
	} {
		if got := f.Sentence(2); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A person reads amounts as the kubelet writes them, and bytes in whole Mi where there are many.
func TestAmountsInWords(t *testing.T) {
	for _, row := range []struct {
		name  string
		value int64
		want  string
	}{
		{"cpu", 1500, "1500m"}, {"cpu", 2000, "2"}, {"pods", 20 << 20, "20971520"}, {"example.com/gpu", 20 << 20, "20971520"}, {"memory", 20<<20 + 1, "20Mi"}, {"hugepages-2Mi", 2 << 20, "2Mi"},
		{"memory", 16 << 20, "16Mi"}, {"memory", 16<<20 - 1, "16777215"}, {"memory", 16<<20 + 1, "16Mi"}, {"memory", 17 << 20, "17Mi"}, {"memory", 33<<20 + 1<<19, "33Mi"}, {"memory", 2000, "2000"},
	} {
		if got := quantityText(corev1.ResourceName(row.name), row.value); got != row.want {
			t.Errorf("%d of %s is %s, want %s", row.value, row.name, got, row.want)
		}
	}
	for signal, want := range map[string]string{"evictionHard.nodefs.inodesFree": "20971521", "evictionSoft.pid.available": "20971521", "pid": "20971521", "memory.available": "20Mi", "nodefs.available": "20Mi"} {
		if got := amountText(signal, 20<<20+1); got != want {
			t.Errorf("%s is %s, want %s", signal, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	lost := []Loss{{Namespace: "a", Name: "b", Reason: "OutOfpods", Certain: true}, {Namespace: "c", Name: "d", Reason: "Evicted", Detail: "x.yaml"}}
	for names, want := range []string{"…", "a/b (OutOfpods)…", "a/b (OutOfpods), c/d (Evicted?: x.yaml)", "a/b (OutOfpods), c/d (Evicted?: x.yaml)"} {
		if got := Names(lost, names); got != want {
			t.Errorf("%d names are %s, want %s", names, got, want)
		}
	}
}
