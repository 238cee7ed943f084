package forecast

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Whatever is configured, and whatever pods there are, a forecast ends, and does not claim more than it names.
func FuzzForecast(f *testing.F) {
	pods, err := json.Marshal(corev1.PodList{Items: append(sevenPods(), aPod("s", 0, static), aPod("crit", 0, priority(systemCritical), asks("memory", "1Gi")))})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"maxPods":3}`), []byte(`{"policyName":"static","defaultCpuSet":"0-1","entries":{"uid-gu1":{"main":"2"}}}`), string(pods))
	f.Add([]byte(`{"maxPods":9,"cpuManagerPolicy":"static","kubeReserved":{"cpu":"9E","memory":"8E"},"evictionHard":{"memory.available":"8E","nodefs.available":"99.99%"}}`), []byte(`{}`), string(pods))
	f.Add([]byte(`{"maxPods":9,"reservedSystemCPUs":"0-3","evictionSoft":{"memory.available":"50%"},"cgroupRoot":"/a","featureGates":{"X":true}}`), []byte(`{}`), string(pods))
	f.Fuzz(func(t *testing.T, text, cpus []byte, list string) {
		then, now, host := configuration(), configuration(), machine()
		if json.Unmarshal(text, then) != nil {
			return
		}
		if state, err := DecodeCPUState(cpus); err == nil {
			host.CPUState = state
		}
		pods, err := ReadPods(strings.NewReader(list))
		if err != nil {
			pods = sevenPods()
		}
		got := Of(Facts{Now: now, Then: then, Node: nodeWith(t, now), Pods: pods, Host: host})
		if got.Least > len(got.Losses) || got.Running > len(pods) || got.Least < 0 {
			t.Errorf("%+v", got)
		}
		_ = got.Sentence(3)
	})
}

// Whatever stands in the file of the memory manager, a forecast ends.
func FuzzMemoryState(f *testing.F) {
	f.Add([]byte(`{"policyName":"Static","machineState":{"0":{"memoryMap":{"memory":{"total":8,"systemReserved":1,"free":4}}}},"entries":{"uid-gu1":{"main":[]}}}`), "1Gi")
	f.Add([]byte(`{"policyName":"Static","data":"{}"}`), "-1")
	f.Fuzz(func(t *testing.T, text []byte, reserved string) {
		state, err := DecodeMemoryState(text)
		if err != nil {
			return
		}
		host := machine()
		host.MemoryState = state
		c := configuration(func(c *Configuration) {
			c.MemoryManagerPolicy, c.ReservedMemory = "Static", []ReservedMemory{{Limits: map[string]string{"memory": reserved}}}
		})
		if got := Of(Facts{Now: c, Then: c, Node: nodeWith(t, configuration()), Pods: sevenPods(), Host: host}); len(got.Losses) > 0 {
			t.Errorf("nothing changes, and %+v", got)
		}
	})
}
