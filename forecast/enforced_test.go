package forecast

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnforced(t *testing.T) {
	reserved := map[string]string{"memory": "27Mi", "cpu": "100m", "pid": "5", "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"}
	whole := Enforced{Cgroup: "/x", Field: "systemReserved", Memory: 27 << 20, PIDs: 5, MilliCPU: 100, Pages: map[int64]int64{2 << 20: 4 << 20}}
	cpuOnly := Enforced{Cgroup: "/x", Field: "systemReserved", PIDs: -1, MilliCPU: 100, Pages: map[int64]int64{}}
	for name, row := range map[string]struct {
		change func(*Configuration)
		want   []Enforced
	}{
		"nothing":      {func(*Configuration) {}, nil},
		"not enforced": {func(c *Configuration) { c.SystemReserved, c.SystemReservedCgroup = reserved, "/x" }, nil},
		"no cgroup": {func(c *Configuration) {
			c.SystemReserved, c.EnforceNodeAllocatable = reserved, []string{"system-reserved"}
		}, nil},
		"all": {func(c *Configuration) {
			c.SystemReserved, c.SystemReservedCgroup, c.EnforceNodeAllocatable = reserved, "/x", []string{"pods", "system-reserved"}
		}, []Enforced{whole}},
		"CPU alone": {func(c *Configuration) {
			c.SystemReserved, c.SystemReservedCgroup, c.EnforceNodeAllocatable = reserved, "/x", []string{"system-reserved-compressible"}
		}, []Enforced{cpuOnly}},
		"both cgroups, a list of CPUs, guaranteed memory": {func(c *Configuration) {
			c.SystemReserved, c.SystemReservedCgroup, c.EnforceNodeAllocatable = map[string]string{"memory": "1Gi"}, "/x", []string{"system-reserved", "kube-reserved"}
			c.KubeReserved, c.KubeReservedCgroup, c.ReservedSystemCPUs = map[string]string{"cpu": "2", "memory": "much", "pid": "-1"}, "/y", "0-2"
			c.FeatureGates = map[string]bool{"MemoryQoS": true}
		}, []Enforced{
			{Cgroup: "/x", Field: "systemReserved", Memory: 1 << 30, PIDs: -1, MilliCPU: 3000, Pages: map[int64]int64{}, MemoryMin: true},
			{Cgroup: "/y", Field: "kubeReserved", PIDs: -1, MilliCPU: -1, Pages: map[int64]int64{}, MemoryMin: true},
		}},
	} {
		c := configuration()
		row.change(c)
		if diff := cmp.Diff(row.want, c.Enforced()); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", name, diff)
		}
	}
}
