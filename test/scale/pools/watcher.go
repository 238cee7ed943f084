//go:build linux

package pools

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// The ports of metrics on loopback, of the first controller and of the first machine; the others have those that follow. Programs are killed in a
// soak and started again: each has its own port for good.
const (
	controllerPort = 8443
	machinePort    = 30247
)

func (o SoakOptions) machinePort() int {
	if o.Watch == nil {
		return 0
	}
	return machinePort
}

// controllerMetrics is where a controller tells its metrics.
func (s *soaker) controllerMetrics(i int) string {
	if s.watcher == nil {
		return "0"
	}
	return fmt.Sprintf("127.0.0.1:%d", controllerPort+i)
}

// startWatcher has Prometheus read all programs that tell something: the real node's by a file, as most people have it, the machines' on loopback.
func (s *soaker) startWatcher(ctx context.Context) error {
	if s.watcher == nil {
		return nil
	}
	if err := s.watcher.States(func(ctx context.Context) ([]corev1.Node, error) {
		var nodes corev1.NodeList
		err := s.admin.List(ctx, &nodes)
		return nodes.Items, err
	}); err != nil {
		return err
	}
	if err := s.watcher.Textfiles(cluster.NodeName, s.real.path("")); err != nil {
		return err
	}
	machines := s.machines.Metrics()
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		s.watcher.Supervisor(name, machines[name])
	}
	for i := range s.controllers {
		s.watcher.Controller(s.controllerMetrics(i))
	}
	return s.watcher.Start(ctx)
}

// lookBack asks Prometheus for all of the rounds, those of a run that failed, too.
func (s *soaker) lookBack(ctx context.Context) (err error) {
	if s.watcher == nil || s.soaked.Took == 0 || ctx.Err() != nil {
		return nil
	}
	s.soaked.Looked, err = s.watcher.Look(ctx, s.began, s.began.Add(s.soaked.Took))
	return err
}
