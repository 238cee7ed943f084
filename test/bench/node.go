//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	namespace = "kube-system"
	payloadAt = "kubelet" // the key
)

type object = map[string]any

// A node is the Node and the ConfigMaps, as an administrator sees and changes them.
type node struct {
	cluster *cluster.Cluster
	client  *rest.RESTClient
	local   string // path of the local KubeletConfiguration
	byField bool   // assignments and what is said of them are the removed feature's fields, not annotations
	pods    int    // maxPods of the newest payload: no two payloads are the same
}

// Kinds of payloads: they tell what becomes of one that is assigned.
const (
	good    = "good"
	refused = "refused" // by pre-flight
	deadly  = "deadly"  // pre-flight accepts it, and the kubelet ends by itself at once
	greedy  = "greedy"  // the same, with a kubelet of any version, but later in its start
	layers  = "layers"  // over the local file
)

// configuration is the node's own, but with the kubelet's own intervals of status reports, not a test's.
func (n *node) configuration() string {
	return strings.Replace(n.cluster.KubeletConfig(), "nodeStatusUpdateFrequency: 2s\n", "", 1)
}

// payload makes a KubeletConfiguration that nobody has seen before.
func (n *node) payload(kind string) string {
	n.pods++
	text := strings.Replace(n.configuration(), "maxPods: 20\n", fmt.Sprintf("maxPods: %d\n", 100+n.pods), 1)
	switch kind {
	case refused:
		text = strings.Replace(text, "eventRecordQPS: 7", "eventRecordQPS: -7", 1)
	case deadly:
		text = strings.Replace(text, n.cluster.Folder+"/pki/ca.crt", "/nonexistent/ca.crt", 1)
	case layers:
		text = fmt.Sprintf("apiVersion: kubelet-supervisor.io/v1alpha1\nkind: KubeletConfigurationLayers\nlayers:\n- {name: fleet, patch: {maxPods: 3}}\n"+
			"- {name: pods, patch: {maxPods: %d}}\n", 100+n.pods)
	case greedy:
		text += "systemReserved: {memory: 1Ti}\n"
	}
	return text
}

// writeLocal writes the local configuration into a file of its own.
func (n *node) writeLocal() error {
	n.local = filepath.Join(n.cluster.Folder, "local.yaml")
	return os.WriteFile(n.local, []byte(n.configuration()), 0o600)
}

// kubelet is the kubelet's command line, with the local configuration.
func (n *node) kubelet(extra ...string) []string {
	words := n.cluster.KubeletArguments(extra...)
	for i, word := range words {
		if word == "--config="+n.cluster.KubeletConfigFile() {
			words[i] = "--config=" + n.local
		}
	}
	return words
}

// write puts a payload into a ConfigMap, made if need be, and gives its new resourceVersion.
func (n *node) write(ctx context.Context, name, payload string) (string, error) {
	data := map[string]string{payloadAt: payload}
	version, err := n.patch(ctx, "configmaps", name, object{"data": data})
	if err != nil {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
		err = n.client.Post().Namespace(namespace).Resource("configmaps").Body(made).Do(ctx).Into(made)
		version = made.ResourceVersion
	}
	if err != nil {
		return "", fmt.Errorf("writing ConfigMap %s: %w", name, err)
	}
	return version, nil
}

// label changes only the metadata of a ConfigMap, and gives its new resourceVersion.
func (n *node) label(ctx context.Context, name string) (string, error) {
	n.pods++
	return n.patch(ctx, "configmaps", name, object{"metadata": object{"labels": object{"bench": fmt.Sprint(n.pods)}}})
}

// assign assigns a ConfigMap; "" removes the assignment.
func (n *node) assign(ctx context.Context, name string) error {
	var text, source any
	if name != "" {
		text = assignmentOf(name)
		source = object{"configMap": object{"namespace": namespace, "name": name, "kubeletConfigKey": payloadAt}}
	}
	change := object{"metadata": object{"annotations": object{nodev1.ConfigSourceAnnotation: text}}}
	if n.byField {
		change = object{"spec": object{"configSource": source}}
	}
	_, err := n.patch(ctx, "nodes", cluster.NodeName, change)
	return err
}

func (n *node) patch(ctx context.Context, resource, name string, change object) (version string, err error) {
	body, err := json.Marshal(change)
	if err != nil {
		return "", err
	}
	var changed metav1.PartialObjectMetadata
	answer, err := n.client.Patch(types.MergePatchType).NamespaceIfScoped(namespace, resource != "nodes").Resource(resource).Name(name).
		Body(body).DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(answer, &changed)
	}
	return changed.ResourceVersion, err
}

func assignmentOf(name string) string { return namespace + "/" + name + "/" + payloadAt }

// A view is what the Node says of its kubelet's configuration.
type view struct {
	byField         bool
	known, observed string // annotations config-status and config-observed
	config          corev1.NodeConfigStatus
	reason, message string // of KubeletConfigOk
	ready           bool
}

func (n *node) viewOf(object *corev1.Node) view {
	v := view{byField: n.byField, known: object.Annotations[nodev1.ConfigStatusAnnotation], observed: object.Annotations[nodev1.ConfigObservedAnnotation]}
	if !n.byField {
		_ = json.Unmarshal([]byte(v.known), &v.config) // what does not decode is not as awaited, and is shown
	} else if object.Status.Config != nil {
		v.config = *object.Status.Config
	}
	for _, c := range object.Status.Conditions {
		switch c.Type {
		case "KubeletConfigOk":
			v.reason, v.message = c.Reason, c.Message
		case corev1.NodeReady:
			v.ready = c.Status == corev1.ConditionTrue
		}
	}
	return v
}

// local: nothing is assigned, and a kubelet that was started without us having a say is healthy.
func (v view) local() bool {
	if v.byField {
		return v.config.Assigned == nil && v.config.Active == nil && v.config.Error == ""
	}
	return v.known == "{}" && v.observed == "" && v.reason == "Local"
}

func (v view) speaksOf(name string) bool { return v.byField || v.observed == assignmentOf(name) }

// runs: this version of the assigned ConfigMap is what the kubelet runs with.
func (v view) runs(name, version string) bool {
	return v.speaksOf(name) && versionOf(v.config.Active) == version && v.config.Error == ""
}

// failed: this version is assigned, and there is an error, with this reason where the Node has one.
func (v view) failed(name, version, reason string) bool {
	return v.speaksOf(name) && versionOf(v.config.Assigned) == version && v.config.Error != "" && (v.byField || v.reason == reason)
}

func versionOf(source *corev1.NodeConfigSource) string {
	if source == nil || source.ConfigMap == nil {
		return ""
	}
	return source.ConfigMap.ResourceVersion
}

// A nodeWatch sees the Node as it changes.
type nodeWatch struct {
	watch.Interface
	node   *node
	newest view
}

// watch begins to watch the Node, and returns when the watch has begun.
func (n *node) watch(ctx context.Context) (*nodeWatch, error) {
	events, err := n.client.Get().Resource("nodes").Param("watch", "true").Param("fieldSelector", "metadata.name="+cluster.NodeName).Watch(ctx)
	if err != nil {
		return nil, fmt.Errorf("watching the Node: %w", err)
	}
	return &nodeWatch{Interface: events, node: n}, nil
}

// await waits until the Node is as described, and gives the moment at which it was seen to be.
func (w *nodeWatch) await(ctx context.Context, description string, as func(view) bool) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		select {
		case event := <-w.ResultChan():
			at := time.Now()
			seen, is := event.Object.(*corev1.Node)
			if !is {
				return at, errors.Join(context.Cause(ctx), fmt.Errorf("waiting until the Node says %s: its watch ended with %v", description, event))
			}
			if w.newest = w.node.viewOf(seen); as(w.newest) {
				return at, nil
			}
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waiting until the Node says %s: %w; it says %+v", description, context.Cause(ctx), w.newest)
		}
	}
}

// look is what the Node says now.
func (n *node) look(ctx context.Context) (view, error) {
	var seen corev1.Node
	err := n.client.Get().Resource("nodes").Name(cluster.NodeName).Do(ctx).Into(&seen)
	return n.viewOf(&seen), err
}

// awaitNode waits until the Node is as described.
func (n *node) awaitNode(ctx context.Context, description string, as func(view) bool) error {
	w, err := n.watch(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	_, err = w.await(ctx, description, as)
	return err
}
