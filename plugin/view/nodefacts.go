package view

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// Pods lists the pods that are bound to a node. The caller adds the node's name to the error.
func (r NodeReader) Pods(ctx context.Context, client kubernetes.Interface, node string) ([]corev1.Pod, error) {
	body, err := r.within(ctx, client, func(api *rest.RESTClient) *rest.Request {
		return api.Get().Resource("pods").Param("fieldSelector", "spec.nodeName="+node)
	})
	if err != nil {
		return nil, fmt.Errorf("its pods cannot be listed: %w", err)
	}
	return forecast.ReadPods(bytes.NewReader(body))
}

// Summary asks a kubelet for its measurements of the machine, which its eviction manager also uses.
func (r NodeReader) Summary(ctx context.Context, client kubernetes.Interface, node string) (forecast.Host, error) {
	body, err := r.within(ctx, client, func(api *rest.RESTClient) *rest.Request { return proxied(api, node, "stats/summary") })
	if err != nil {
		return forecast.Host{}, fmt.Errorf("its kubelet's statistics cannot be had: %w", err)
	}
	return parseSummary(body)
}

func (r NodeReader) within(ctx context.Context, client kubernetes.Interface, what func(*rest.RESTClient) *rest.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("no answer within %s", r.Timeout))
	defer cancel()
	body, err := r.get(ctx, client, what)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return body, err
}

// A summary has the fields of the kubelet's Summary that are used (k8s.io/kubelet/pkg/apis/stats/v1alpha1).
// Missing values are nil.
type summary struct {
	Node struct {
		Memory           memoryStats
		Fs               *filesystemStats
		Runtime          struct{ ImageFs *filesystemStats }
		Rlimit           struct{ Maxpid, Curproc *int64 }
		SystemContainers []struct {
			Name   string
			Memory memoryStats
		}
	}
}

type memoryStats struct{ AvailableBytes, WorkingSetBytes *int64 }

type filesystemStats struct{ AvailableBytes, CapacityBytes, InodesFree, Inodes *int64 }

// podsContainer is the kubelet's name for the cgroup of all pods.
const podsContainer = "pods"

func parseSummary(body []byte) (h forecast.Host, err error) {
	var s summary
	if err := json.Unmarshal(body, &s); err != nil {
		return h, fmt.Errorf("reading its kubelet's statistics: %s", bounded.Text(bounded.Line(err.Error()), maxCause))
	}
	if free, used := s.Node.Memory.AvailableBytes, s.Node.Memory.WorkingSetBytes; free != nil && used != nil {
		h.Memory = &forecast.Amount{Available: *free, Capacity: *free + *used}
	}
	if most, now := s.Node.Rlimit.Maxpid, s.Node.Rlimit.Curproc; most != nil && now != nil {
		h.PIDs = &forecast.Amount{Available: *most - *now, Capacity: *most}
	}
	h.NodeFS, h.ImageFS = s.Node.Fs.facts(), s.Node.Runtime.ImageFs.facts()
	for _, c := range s.Node.SystemContainers {
		if c.Name == podsContainer {
			h.PodsMemory = c.Memory.WorkingSetBytes
		}
	}
	return h, nil
}

// facts returns nil if bytes are missing. A file system without inodes may omit them.
func (f *filesystemStats) facts() *forecast.Filesystem {
	if f == nil || f.AvailableBytes == nil || f.CapacityBytes == nil {
		return nil
	}
	facts := &forecast.Filesystem{Bytes: forecast.Amount{Available: *f.AvailableBytes, Capacity: *f.CapacityBytes}}
	if f.InodesFree != nil && f.Inodes != nil {
		facts.Inodes = forecast.Amount{Available: *f.InodesFree, Capacity: *f.Inodes}
	}
	return facts
}
