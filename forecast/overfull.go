package forecast

import (
	corev1 "k8s.io/api/core/v1"
)

// An Overfull cgroup would get a limit that is below what its processes take: the kernel ends some of them, or lets
// none begin. The kubelet, the container runtime and the supervisor may be among them.
type Overfull struct {
	Cgroup      string // as the configuration names it
	Field       string // that has the limit, such as systemReserved.memory
	Used, Limit int64
	kind        corev1.ResourceName
}

// Reason is a word for a status.
func (o Overfull) Reason() string {
	if o.kind == corev1.ResourceMemory {
		return "OutOfmemory"
	}
	return "OutOfpid"
}

func (o Overfull) String() string {
	of := "processes and threads, and has "
	end := ": none could begin in it"
	if o.kind == corev1.ResourceMemory {
		of, end = "of memory, and uses ", ": the kernel would end processes in it"
	}
	return "cgroup " + o.Cgroup + " would be limited by " + o.Field + " to " + amountText(string(o.kind), o.Limit) + " " + of + amountText(string(o.kind), o.Used) + end +
		", and the kubelet and the container runtime may be in it"
}

// overfull compares what the next configuration enforces with what was measured. An existing limit is not part of the change.
func overfull(f Facts) (list []Overfull) {
	for _, e := range f.Then.Enforced() {
		use, measured := f.Host.Cgroups[e.Cgroup]
		before := enforcedOn(f.Now, e.Cgroup)
		if e.Memory > 0 && measured && e.Memory < use.Memory && !(before.Memory > 0 && before.Memory <= e.Memory) {
			list = append(list, Overfull{Cgroup: e.Cgroup, Field: e.Field + ".memory", Used: use.Memory, Limit: e.Memory, kind: corev1.ResourceMemory})
		}
		if e.PIDs >= 0 && measured && e.PIDs < use.PIDs && !(before.PIDs >= 0 && before.PIDs <= e.PIDs) {
			list = append(list, Overfull{Cgroup: e.Cgroup, Field: e.Field + ".pid", Used: use.PIDs, Limit: e.PIDs, kind: "pid"})
		}
	}
	return list
}

// enforcedOn is what a configuration enforces on a cgroup.
func enforcedOn(c *Configuration, cgroup string) Enforced {
	for _, e := range c.Enforced() {
		if e.Cgroup == cgroup {
			return e
		}
	}
	return Enforced{PIDs: -1}
}

// LimitedCgroups are those of whose use a forecast has to know.
func (c *Configuration) LimitedCgroups() (names []string) {
	for _, e := range c.Enforced() {
		if e.Memory > 0 || e.PIDs >= 0 {
			names = append(names, e.Cgroup)
		}
	}
	return names
}

// cgroupDoubts are about cgroups whose use was not measured.
func cgroupDoubts(f Facts) (list []Unknown) {
	for _, name := range f.Then.LimitedCgroups() {
		if _, measured := f.Host.Cgroups[name]; !measured {
			list = append(list, Unknown{"cgroup " + name, "what its processes take is not known, and it would be limited; where there is no such cgroup, the kubelet would end at its start"})
		}
	}
	return list
}
