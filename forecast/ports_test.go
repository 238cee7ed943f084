package forecast

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The ports of the node that a pod has are those of containers that run as long as it does.
func TestHostPorts(t *testing.T) {
	always, never := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever
	with := func(policy *corev1.ContainerRestartPolicy, ports ...corev1.ContainerPort) corev1.Container {
		return corev1.Container{RestartPolicy: policy, Ports: ports}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{with(nil, corev1.ContainerPort{HostPort: 1}), with(&never, corev1.ContainerPort{HostPort: 2}), with(&always, corev1.ContainerPort{HostPort: 3})},
		Containers: []corev1.Container{with(nil, corev1.ContainerPort{ContainerPort: 4}, corev1.ContainerPort{HostPort: 5, HostIP: "0.0.0.0", Protocol: corev1.ProtocolUDP},
			corev1.ContainerPort{HostPort: 6, HostIP: "10.0.0.1"})},
	}}
	want := []hostPort{{"", corev1.ProtocolTCP, 3}, {"", corev1.ProtocolUDP, 5}, {"10.0.0.1", corev1.ProtocolTCP, 6}}
	if got := hostPorts(pod); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 1}}
	if got := hostPorts(pod); !slices.Contains(got, hostPort{"", corev1.ProtocolTCP, 1}) {
		t.Errorf("the first of all ports is not among %v", got)
	}
}

// Two ports are one where number and protocol are the same, and one address or all.
func TestPortsThatConflict(t *testing.T) {
	tcp := hostPort{"", corev1.ProtocolTCP, 80}
	one := hostPort{"10.0.0.1", corev1.ProtocolTCP, 80}
	for name, row := range map[string]struct {
		a, b hostPort
		want bool
	}{
		"the same":             {tcp, tcp, true},
		"the same of one":      {one, one, true},
		"one and all":          {one, tcp, true},
		"two addresses":        {one, hostPort{"10.0.0.2", corev1.ProtocolTCP, 80}, false},
		"another number":       {tcp, hostPort{"", corev1.ProtocolTCP, 81}, false},
		"another protocol":     {tcp, hostPort{"", corev1.ProtocolUDP, 80}, false},
		"another, one address": {one, hostPort{"10.0.0.1", corev1.ProtocolUDP, 80}, false},
	} {
		if row.a.conflicts(row.b) != row.want || row.b.conflicts(row.a) != row.want {
			t.Errorf("%s: %t, want %t", name, !row.want, row.want)
		}
	}
}
