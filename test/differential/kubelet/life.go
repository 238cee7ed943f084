package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// run lets the node live, and then restarts its kubelet, with either configuration and in each order.
func (c Case) run() (Result, error) {
	folder, err := os.MkdirTemp(stateRoot(), "differential")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(folder)
	now, err := newConfiguration(c.Now)
	if err != nil {
		return Result{}, fmt.Errorf("what runs: %w", err)
	}
	then, err := newConfiguration(c.Then)
	if err != nil {
		return Result{}, fmt.Errorf("what is to run: %w", err)
	}
	live := filepath.Join(folder, "live")
	pods, node, err := c.live(now, live)
	if err != nil {
		return Result{}, fmt.Errorf("what runs: %w", err)
	}
	result := Result{Now: now.text, Then: then.text, Node: *node}
	for _, pod := range pods {
		result.Running = append(result.Running, pod.Name)
	}
	result.CPUState, result.MemoryState = content(live, cpuState), content(live, memoryState)
	for _, of := range []*configuration{now, then} {
		for order := range c.Orders {
			r := Restart{Then: of == then, Order: order}
			if r.Lost, err = c.restart(of, live, filepath.Join(folder, "restart"), pods, c.Orders[order]); err != nil {
				r.Ended = err.Error()
			}
			result.Restarts = append(result.Restarts, r)
		}
	}
	return result, nil
}

const cpuState, memoryState = "cpu_manager_state", "memory_manager_state"

// stateRoot is a folder in memory, for the managers wait until each step is on the disk.
func stateRoot() string {
	if _, err := os.Stat("/dev/shm"); err == nil {
		return "/dev/shm"
	}
	return ""
}

func content(folder, name string) string {
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return ""
	}
	return string(text)
}

// live admits the pods one after the other, as a kubelet that runs does, and starts the containers of those that it admits.
func (c Case) live(now *configuration, folder string) ([]*v1.Pod, *v1.Node, error) {
	k, err := start(now, c.Machine, &c.Node, folder)
	if err != nil {
		return nil, nil, err
	}
	k.ready()
	for i := range c.Pods {
		pod := kubeletsOwn(&c.Pods[i])
		k.add(pod)
		if k.admit(pod) != "" {
			k.remove(pod)
			continue
		}
		k.run(pod)
	}
	k.deleted(func(pod *v1.Pod) bool { return slices.Contains(c.Deleted, pod.Name) })
	if !c.Stale {
		k.forgetGone()
	}
	return k.active(), k.node, nil
}

// kubeletsOwn is a pod as the kubelet has it: a static pod has an ID of its own, which stands on its mirror.
func kubeletsOwn(pod *v1.Pod) *v1.Pod {
	own := pod.DeepCopy()
	if hash, is := own.Annotations[v1.MirrorPodAnnotationKey]; is {
		delete(own.Annotations, v1.MirrorPodAnnotationKey)
		own.UID = types.UID(hash)
	}
	return own
}

// restart sets state files aside that another policy wrote, and those over which the kubelet ends.
func (c Case) restart(of *configuration, live, folder string, pods []*v1.Pod, order []string) (map[string]string, error) {
	if err := os.RemoveAll(folder); err != nil {
		return nil, err
	}
	if err := os.CopyFS(folder, os.DirFS(live)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	of.setAsideForeign(folder)
	k, err := start(of, c.Later, &c.Node, folder)
	for err != nil {
		var fault stateFault
		if !errors.As(err, &fault) || os.Remove(filepath.Join(folder, fault.file)) != nil {
			return nil, err
		}
		k, err = start(of, c.Later, &c.Node, folder)
	}
	lost := map[string]string{}
	k.preempted = func(pod *v1.Pod) { lost[pod.Name] = "Preempting" }
	for _, pod := range inOrder(pods, order) {
		pod = pod.DeepCopy()
		k.add(pod)
		if reason := k.admit(pod); reason != "" {
			k.remove(pod)
			lost[pod.Name] = reason
		}
	}
	return lost, nil
}

// inOrder sorts as the kubelet does: static pods come first, then the oldest; equal ones as the order has them.
func inOrder(pods []*v1.Pod, order []string) []*v1.Pod {
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b *v1.Pod) int {
		if isStatic(a) != isStatic(b) {
			if isStatic(a) {
				return -1
			}
			return 1
		}
		byTime := 0
		if !isStatic(a) {
			byTime = a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		}
		return cmp.Or(byTime, cmp.Compare(slices.Index(order, a.Name), slices.Index(order, b.Name)))
	})
	return pods
}
