//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A view is what the Node says of its kubelet's configuration.
type view struct {
	observed, text string // annotations config-observed and config-status
	status         corev1.NodeConfigStatus
	condition      corev1.NodeCondition
	info           corev1.NodeSystemInfo
}

func viewOf(node *corev1.Node) view {
	says := nodev1.Read(node) // what does not decode is empty, and not as expected
	return view{observed: node.Annotations[nodev1.ConfigObservedAnnotation], text: node.Annotations[nodev1.ConfigStatusAnnotation],
		status: says.Config, condition: says.Condition, info: node.Status.NodeInfo}
}

// A want is what the Node has to say. Of the ConfigMaps it gives the names; "" is none.
type want struct {
	condition                       string // status and reason
	assigned, active, lastKnownGood string
	edited                          bool   // active is another version than lastKnownGood
	failure                         string // the status' error, whole
	message                         string // what the condition's message has in it
}

func (w want) seenIn(v view) bool {
	return fmt.Sprint(v.condition.Status, " ", v.condition.Reason) == w.condition &&
		(w.assigned == "" && v.observed == "" && v.text == "{}" || w.assigned != "" && v.observed == source(w.assigned)) &&
		nameOf(v.status.Assigned) == w.assigned && nameOf(v.status.Active) == w.active && nameOf(v.status.LastKnownGood) == w.lastKnownGood &&
		(!w.edited || v.status.Active.ConfigMap.ResourceVersion != v.status.LastKnownGood.ConfigMap.ResourceVersion) &&
		v.status.Error == w.failure && strings.Contains(v.condition.Message, w.message)
}

func nameOf(source *corev1.NodeConfigSource) string {
	if source == nil || source.ConfigMap == nil {
		return ""
	}
	return source.ConfigMap.Name
}

var lengthy = regexp.MustCompile(`"(namespace|uid|kubeletConfigKey)":"[^"]*",?`)

// rows are the view as `kubectl get node n1 -o yaml` has it; of the status only what tells versions apart.
func (v view) rows() [][2]string {
	status := strings.NewReplacer(`",}`, `"}`, `},"`, `}, "`).Replace(lengthy.ReplaceAllString(v.text, ""))
	return [][2]string{
		{"config-observed  ", v.observed}, {"config-status    ", status},
		{"KubeletConfigOk  ", fmt.Sprintf("%s %s: %s", v.condition.Status, v.condition.Reason, v.condition.Message)},
	}
}

func (v view) String() string {
	return fmt.Sprintf("config-observed %q, config-status %q, KubeletConfigOk %s %s: %q", v.observed, v.text, v.condition.Status, v.condition.Reason, v.condition.Message)
}

// await watches the Node until it is as wanted; the error has what it said last.
func (d *demo) await(ctx context.Context, wanted want) (newest view, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begin := time.Now()
	nodes, err := d.client.Get().Resource("nodes").Param("watch", "true").Param("fieldSelector", "metadata.name="+cluster.NodeName).Watch(ctx)
	if err != nil {
		return newest, fmt.Errorf("watching the Node: %w", err)
	}
	defer nodes.Stop()
	for {
		select {
		case event := <-nodes.ResultChan():
			node, is := event.Object.(*corev1.Node)
			if !is {
				return newest, errors.Join(ctx.Err(), fmt.Errorf("the watch of the Node ended with %v; until then: %s", event, newest))
			}
			if newest = viewOf(node); wanted.seenIn(newest) {
				return newest, nil
			}
		case <-d.supervisor.done:
			return newest, fmt.Errorf("kubelet-supervisor ended (%w); until then: %s", d.supervisor.err, newest)
		case <-ctx.Done():
			return newest, fmt.Errorf("%w after %s; until then: %s", ctx.Err(), time.Since(begin).Round(time.Second), newest)
		}
	}
}
