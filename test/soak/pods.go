//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	podsPath   = "/api/v1/namespaces/default/pods"
	podsWithin = 2 * time.Minute // of the truth; a kubelet tells late what it has found
	probePort  = 18080           // of the node's loopback, inside the cluster's network
	wholeCPUs  = "whole-cpus"    // the pod that comes and goes; a static policy gives it a processor of its own
	mirrorless = "mirrorless"    // a static pod, and its namespace, in which the API server takes no mirror of it

	// apart is between two pods that are made. Of two of the same second it is not known which one the kubelet prefers.
	apart = 1100 * time.Millisecond
)

// A workload is what a pod asks for.
type workload struct {
	requests, limits string // cpu and memory, as JSON
	probed           bool   // has a readiness probe
	static           bool   // from a file and not from the API
	namespace        string // "": default
}

// workloads are the pods that run all the while, of each QoS class. Together they fit beside what any good configuration reserves on
// two processors. No change of a configuration touches any of them.
var workloads = map[string]workload{
	wholeCPUs:            {requests: `{"cpu": "1", "memory": "32Mi"}`, limits: `{"cpu": "1", "memory": "32Mi"}`},
	"guaranteed":         {requests: `{"cpu": "100m", "memory": "32Mi"}`, limits: `{"cpu": "100m", "memory": "32Mi"}`},
	"burstable-probed":   {requests: `{"cpu": "50m", "memory": "16Mi"}`, limits: `{"memory": "64Mi"}`, probed: true},
	"burstable-cpu":      {requests: `{"cpu": "50m"}`, limits: `{}`},
	"burstable-memory":   {requests: `{"memory": "16Mi"}`, limits: `{"memory": "64Mi"}`},
	"static-burstable":   {requests: `{"cpu": "50m"}`, limits: `{}`, static: true},
	"static-best-effort": {requests: `{}`, limits: `{}`, static: true},
	"best-effort-1":      {requests: `{}`, limits: `{}`},
	"best-effort-2":      {requests: `{}`, limits: `{}`},
	"best-effort-3":      {requests: `{}`, limits: `{}`},
	"best-effort-4":      {requests: `{}`, limits: `{}`},
}

// manifest is the Pod of a workload.
func manifest(name string, w workload) object {
	container := object{
		"name": "main", "image": cluster.PauseImage, "imagePullPolicy": "Never",
		"resources": object{"requests": json.RawMessage(w.requests), "limits": json.RawMessage(w.limits)},
	}
	if w.probed {
		container["args"] = []string{fmt.Sprintf("127.0.0.1:%d", probePort)}
		container["readinessProbe"] = object{"tcpSocket": object{"host": "127.0.0.1", "port": probePort}, "periodSeconds": 1}
	}
	return object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "namespace": cmp.Or(w.namespace, "default")},
		"spec": object{
			"nodeName": cluster.NodeName, "hostNetwork": true, "terminationGracePeriodSeconds": 2, "automountServiceAccountToken": false,
			"containers": []any{container},
		},
	}
}

// apiName is a pod's name in the API.
func (w workload) apiName(name string) string {
	if w.static {
		return name + "-" + cluster.NodeName
	}
	return name
}

// An instance is what must not change of a pod as long as nobody deletes it.
type instance struct {
	UID       string
	Container string // its ID
	Restarts  int32
	Started   time.Time
}

// A podSet is the pods of the node, and what they were at the last quiescent moment.
type podSet struct {
	node      *node
	known     map[string]instance             // by name in the API
	lost      map[string]bool                 // ended by a change that was approved, and not made again yet
	sandbox   string                          // of the static pod without a mirror
	uncounted bool                            // the kubelet was started while the machine had not what a lost pod asks for
	mayLose   string                          // a pod that may have ended in this round for what was done to the machine; "": none
	recount   func(ctx context.Context) error // restarts the kubelet, which counts what such a pod asks for when it starts
	compared  int                             // pods that were found untouched, over all quiescent moments
	made      int                             // pods that were made again, after a change that was approved had ended them
}

func newPodSet(n *node) *podSet {
	return &podSet{node: n, known: map[string]instance{}, lost: map[string]bool{}}
}

// createAll makes all pods, those of files included.
func (p *podSet) createAll(ctx context.Context) error {
	if err := os.MkdirAll(p.node.staticPodPath(), 0o700); err != nil {
		return err
	}
	if err := p.writeStatic(mirrorless, workload{requests: `{}`, limits: `{}`, namespace: mirrorless}); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(workloads)) {
		add := p.createApart
		if workloads[name].static {
			add = func(_ context.Context, name string) error { return p.writeStatic(name, workloads[name]) }
		}
		if err := add(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (p *podSet) writeStatic(name string, w workload) error {
	content, err := json.Marshal(manifest(name, w))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.node.staticPodPath(), name+".json"), content, 0o600)
}

// createApart makes a pod of another second than the next.
func (p *podSet) createApart(ctx context.Context, name string) error {
	if err := p.create(ctx, name); err != nil {
		return err
	}
	select {
	case <-time.After(apart):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// renewed: one of these pods is another one by now.
func (p *podSet) renewed(losses []nodev1.Loss) bool {
	return slices.ContainsFunc(losses, func(l nodev1.Loss) bool {
		name := strings.TrimPrefix(l.Pod, "default/")
		return !workloads[name].static && p.known[name].UID != "" && p.known[name].UID != l.UID
	})
}

// running is how many pods there are for the kubelet.
func (p *podSet) running() int { return len(p.known) + 1 }

// change does what a step does to the pod that comes and goes. It does not wait for what the kubelet does.
func (p *podSet) change(ctx context.Context, what podChange) error {
	switch what {
	case podDeleted:
		delete(p.known, wholeCPUs)
		delete(p.lost, wholeCPUs)
		return p.node.insist(ctx, func() error {
			_, err := p.node.request(ctx, http.MethodDelete, podsPath+"/"+wholeCPUs, nil)
			if code(err) == http.StatusNotFound {
				return nil
			}
			return err
		})
	case podCreated:
		return p.create(ctx, wholeCPUs)
	}
	return nil
}

func (p *podSet) create(ctx context.Context, name string) error {
	return p.node.insist(ctx, func() error {
		_, err := p.node.request(ctx, http.MethodPost, podsPath, manifest(name, workloads[name]))
		if code(err) == http.StatusConflict {
			return nil
		}
		return err
	})
}

// settle waits until all pods run that are to, and no others; one that was touched is an error at once. Only those may have ended that a hold
// has named which was approved. They are made again as soon as something runs that has room for them.
func (p *podSet) settle(ctx context.Context, w world, active payload, named func(pod string) bool) error {
	approved := func(pod string) bool { return named(pod) || pod == p.mayLose }
	before := p.lost[p.mayLose]
	if err := p.awaitAll(ctx, w, approved); err != nil {
		return err
	}
	uncounted := p.lost[p.mayLose] && !before && !named(p.mayLose)
	p.uncounted = p.uncounted || uncounted
	p.mayLose = ""
	if err := p.checkMirrorless(ctx); err != nil {
		return err
	}
	if active.quality == harmful || len(p.lost) == 0 {
		return nil
	}
	if p.uncounted {
		if err := p.recount(ctx); err != nil {
			return err
		}
		p.uncounted = false
	}
	if err := p.renew(ctx); err != nil {
		return err
	}
	return p.awaitAll(ctx, w, func(string) bool { return false })
}

func (p *podSet) awaitAll(ctx context.Context, w world, approved func(pod string) bool) error {
	var touched error
	err := await(ctx, podsWithin, "all pods run and are ready", func() error {
		pods, err := p.list(ctx, podsPath)
		if err != nil {
			return err
		}
		if touched = p.touched(pods, approved); touched != nil {
			return nil
		}
		return p.complete(pods, w, approved)
	})
	return errors.Join(touched, err)
}

func (p *podSet) list(ctx context.Context, path string) ([]corev1.Pod, error) {
	answer, err := p.node.request(ctx, http.MethodGet, path, nil)
	var list corev1.PodList
	if err == nil {
		err = json.Unmarshal(answer, &list)
	}
	return list.Items, err
}

// checkMirrorless: the static pod that the API server does not know has the sandbox that it had.
func (p *podSet) checkMirrorless(ctx context.Context) error {
	pods, err := p.list(ctx, "/api/v1/namespaces/"+mirrorless+"/pods")
	if err != nil {
		return err
	}
	if len(pods) > 0 {
		return fmt.Errorf("the API server has taken a mirror of %s, so nothing is proved by it", pods[0].Name)
	}
	return await(ctx, podsWithin, "the static pod without a mirror runs", func() error {
		sandboxes, err := host.Sandboxes(ctx, "unix://"+filepath.Join(p.node.Folder, "containerd.sock"))
		if err != nil {
			return err
		}
		sandboxes = slices.DeleteFunc(sandboxes, func(s forecast.Sandbox) bool { return s.Namespace != mirrorless })
		switch {
		case len(sandboxes) != 1:
			return fmt.Errorf("it has %d sandboxes", len(sandboxes))
		case p.sandbox == "":
			p.sandbox = sandboxes[0].ID
		case p.sandbox != sandboxes[0].ID:
			return fmt.Errorf("it was touched: its sandbox was %s and is %s", p.sandbox, sandboxes[0].ID)
		}
		return nil
	})
}

// renew makes the pods again that were lost.
func (p *podSet) renew(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(p.lost)) {
		err := await(ctx, podsWithin, "pod "+name+", which has ended, is gone", func() error {
			_, err := p.node.request(ctx, http.MethodDelete, podsPath+"/"+name, object{"gracePeriodSeconds": 0})
			if code(err) == http.StatusNotFound {
				return nil
			}
			return errors.Join(errors.New("it is there"), err)
		})
		if err == nil {
			err = p.createApart(ctx, name)
		}
		if err != nil {
			return err
		}
		p.made++
	}
	clear(p.lost)
	return nil
}

// touched tells which pod is not what it was, and has no excuse.
func (p *podSet) touched(pods []corev1.Pod, approved func(pod string) bool) error {
	there := map[string]bool{}
	for _, pod := range pods {
		before, known := p.known[pod.Name]
		if pod.DeletionTimestamp != nil && !known {
			continue // it ends as it is to
		}
		if p.lost[pod.Name] || approved(pod.Name) {
			continue
		}
		there[pod.Name] = pod.DeletionTimestamp == nil
		if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			return fmt.Errorf("pod %s was ended: %s: %s: %s", pod.Name, pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
		}
		if now := instanceOf(pod); known && now.Container != "" && now != before {
			return fmt.Errorf("pod %s was touched: it was %+v and is %+v", pod.Name, before, now)
		}
		for _, s := range pod.Status.ContainerStatuses {
			if known && s.RestartCount > before.Restarts { // one that is just made may be started twice, where its kubelet ends between its creation and its start
				return fmt.Errorf("pod %s was touched: its container was started again: %+v", pod.Name, s)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.known)) {
		if !there[name] && !approved(name) {
			return fmt.Errorf("pod %s is gone", name)
		}
	}
	return nil
}

func instanceOf(pod corev1.Pod) instance {
	r := instance{UID: string(pod.UID)}
	for _, s := range pod.Status.ContainerStatuses {
		r.Container, r.Restarts = s.ContainerID, s.RestartCount
		if s.State.Running != nil {
			r.Started = s.State.Running.StartedAt.UTC()
		}
	}
	return r
}

// complete tells what is missing, or there too much. When nothing is, the pods are what the next moments are compared with.
func (p *podSet) complete(pods []corev1.Pod, w world, approved func(pod string) bool) error {
	now, lost := map[string]instance{}, map[string]bool{}
	for _, pod := range pods {
		r := instanceOf(pod)
		if ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded; ended && (p.lost[pod.Name] || approved(pod.Name)) {
			lost[pod.Name] = true
			continue
		}
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning || !isReady(pod) || r.Started.IsZero() {
			return fmt.Errorf("pod %s: %s, ready: %v, to be deleted: %v", pod.Name, pod.Status.Phase, isReady(pod), pod.DeletionTimestamp != nil)
		}
		now[pod.Name] = r
	}
	for name, load := range workloads {
		if _, there := now[load.apiName(name)]; there == (lost[name] || name == wholeCPUs && w.noPod) {
			return fmt.Errorf("pod %s: there: %v", name, there)
		}
	}
	if len(now) > len(workloads) {
		return fmt.Errorf("there are %d pods, and %d were made", len(now), len(workloads))
	}
	p.compared += len(p.known)
	p.known, p.lost = now, lost
	return nil
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
