package forecast

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// A hostPort is a port of the node that a pod asks for. One that another pod has is refused, whatever process listens there.
type hostPort struct {
	ip       string // "" for all
	protocol corev1.Protocol
	port     int32
}

// hostPorts are those of containers that run as long as the pod.
func hostPorts(pod *corev1.Pod) (list []hostPort) {
	of := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			port := hostPort{p.HostIP, cmp.Or(p.Protocol, corev1.ProtocolTCP), p.HostPort}
			if port.ip == "0.0.0.0" {
				port.ip = ""
			}
			list = append(list, port)
		}
	}
	for i := range pod.Spec.InitContainers {
		if policy := pod.Spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			of(&pod.Spec.InitContainers[i])
		}
	}
	for i := range pod.Spec.Containers {
		of(&pod.Spec.Containers[i])
	}
	return list
}

func (p hostPort) conflicts(with hostPort) bool {
	return p.port == with.port && p.protocol == with.protocol && (p.ip == with.ip || p.ip == "" || with.ip == "")
}

// portTaken returns the pod that has the port which this pod asks for; empty = none.
func (a *admission) portTaken(c *candidate) string {
	for _, other := range a.inside {
		for _, has := range other.ports {
			for _, asks := range c.ports {
				if asks.conflicts(has) {
					return fmt.Sprintf("%s %d of the node is asked for, which %s/%s has", asks.protocol, asks.port, other.pod.Namespace, other.pod.Name)
				}
			}
		}
	}
	return ""
}
