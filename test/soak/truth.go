//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

// checkHealthy: the supervisor that runs has one kubelet, knows it, and it answers.
func (s *soaker) checkHealthy(ctx context.Context) error {
	record, running, err := supervisor.ReadRecord(s.service.runDir())
	pid := s.service.pid()
	table := s.node.processTable()
	kubelets := table.kubelets()
	switch {
	case err != nil:
		return err
	case !running || record.Supervisor.PID != pid:
		return fmt.Errorf("state.json is of supervisor %d, and %d runs", record.Supervisor.PID, pid)
	case record.Child == nil || !slices.Equal(kubelets, []int{record.Child.PID}):
		return fmt.Errorf("the kubelets are %v, and state.json has %+v", kubelets, record.Child)
	case table.parentOf(kubelets[0]) != pid:
		return fmt.Errorf("the parent of kubelet %d is %d, and not the supervisor %d", kubelets[0], table.parentOf(kubelets[0]), pid)
	case !record.Healthy:
		return errors.New("the supervisor does not know that the kubelet is healthy")
	}
	return s.node.Healthz(ctx)
}

// checkTruth: all that tells what runs agrees with the Node.
func (s *soaker) checkTruth(ctx context.Context, v view) error {
	record, _, err := supervisor.ReadRecord(s.service.runDir())
	if err != nil {
		return err
	}
	if difference := cmp.Diff(v.config, record.Config); difference != "" {
		return fmt.Errorf("config-status and state.json differ, - Node, + file: %s", difference)
	}
	if !strings.HasPrefix(v.condition.Message, v.using()) {
		return fmt.Errorf("the condition's message does not begin with %s: %s", v.using(), v.condition.Message)
	}
	if p, known := s.plan.world.wanted(); known && p.quality != none && v.condition.Reason != "WouldDisrupt" && !s.node.isNewest(v.config.Assigned) {
		return fmt.Errorf("assigned is not the newest version: %+v", v.config.Assigned.ConfigMap)
	}
	return errors.Join(s.checkRunning(ctx, v.active), s.checkDisk(v.config))
}

// using is how the message has to begin.
func (v view) using() string {
	role, name := "current", "default"
	if v.active != v.assigned {
		role = "last-known-good"
	}
	if v.config.Active != nil {
		name = fmt.Sprintf("UID: %q", v.config.Active.ConfigMap.UID)
	}
	return fmt.Sprintf("using %s (%s)", role, name)
}

// checkRunning: the kubelet was started with the payload's file, and says that it runs with it.
func (s *soaker) checkRunning(ctx context.Context, active payload) error {
	record, _, err := supervisor.ReadRecord(s.service.runDir())
	if err != nil || record.Child == nil {
		return errors.Join(err, errors.New("state.json has no kubelet"))
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", record.Child.PID))
	if err != nil {
		return err
	}
	effective := filepath.Join(s.service.runDir(), "effective", "kubelet.yaml")
	maxPods := 20 // the node's own
	if active.quality != none {
		maxPods = active.number
		text, err := os.ReadFile(effective)
		if err != nil {
			return err
		}
		var rendered struct{ MaxPods int }
		if err := yaml.Unmarshal(text, &rendered); err != nil || rendered.MaxPods != maxPods {
			return fmt.Errorf("%s has maxPods %d, want %s (%w)", effective, rendered.MaxPods, active, err)
		}
	}
	if has := strings.Contains(string(line), "\x00--config="+effective+"\x00"); has != (active.quality != none) {
		return fmt.Errorf("the kubelet's arguments name the effective file: %v, with %s active", has, active)
	}
	config, err := s.node.Configz(ctx)
	if err != nil {
		return err
	}
	if config["maxPods"] != float64(maxPods) {
		return fmt.Errorf("configz has maxPods %v, with %s active", config["maxPods"], active)
	}
	return nil
}

// checkDisk: the pointers on disk are the Node's, and their checkpoints are whole.
func (s *soaker) checkDisk(config corev1.NodeConfigStatus) error {
	for name, source := range map[string]*corev1.NodeConfigSource{"assigned": config.Assigned, "last-known-good": config.LastKnownGood} {
		file := filepath.Join(s.service.stateDir(), "meta", name)
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var stored struct{ Source corev1.NodeConfigSource }
		if err := yaml.Unmarshal(text, &stored); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if source == nil {
			source = &corev1.NodeConfigSource{}
		}
		if difference := cmp.Diff(*source, stored.Source); difference != "" {
			return fmt.Errorf("the Node and %s differ, - Node, + file: %s", file, difference)
		}
		if source.ConfigMap == nil {
			continue
		}
		checkpoint := filepath.Join(s.service.stateDir(), "checkpoints", string(source.ConfigMap.UID), source.ConfigMap.ResourceVersion)
		if _, err := os.Stat(checkpoint + ".sha256"); err != nil {
			return fmt.Errorf("%s names a checkpoint that is not whole: %w", name, err)
		}
	}
	return nil
}
