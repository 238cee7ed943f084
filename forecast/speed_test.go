package forecast

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// many are 110 pods, of Deployments and so some in one second, with all that makes a forecast work.
func many(perSecond int) []corev1.Pod {
	pods := []corev1.Pod{}
	for i := range 110 {
		pod := aPod(fmt.Sprintf("web-%d", i), i/perSecond, asks("cpu", "30m", "memory", "60Mi"), sysctl("net.core.somaxconn"), func(pod *corev1.Pod) {
			pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
			pod.Spec.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}, {Key: "b", Operator: corev1.TolerationOpExists}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResources: quantities([]string{"cpu", "30m", "memory", "60Mi"})}}
		})
		pods = append(pods, pod)
	}
	return pods
}

func BenchmarkForecast(b *testing.B) {
	for name, of := range map[string]struct{ perSecond, most int32 }{"all fit": {10, 120}, "tens of one second": {10, 100}, "all of one second": {110, 100}} {
		b.Run(name, func(b *testing.B) {
			allow := func(c *Configuration) { c.AllowedUnsafeSysctl = []string{"net.*"} }
			f := Facts{Now: configuration(maxPods(110), allow), Then: configuration(maxPods(of.most), allow), Pods: many(int(of.perSecond)), Host: machine()}
			f.Node = nodeWith(b, f.Now)
			for b.Loop() {
				if got := Of(f); len(got.Missing)+len(got.Doubts) > 0 || got.Least != int(max(0, 110-of.most)) {
					b.Fatalf("%+v", got)
				}
			}
		})
	}
}

func BenchmarkReadPods(b *testing.B) {
	text, err := json.Marshal(corev1.PodList{Items: many(1)})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := ReadPods(bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
