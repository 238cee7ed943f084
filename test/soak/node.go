//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	apiServerURL = "https://127.0.0.1:6443"
	nodePath     = "/api/v1/nodes/" + cluster.NodeName
	mapsPath     = "/api/v1/namespaces/" + namespace + "/configmaps"

	requestTimeout = 5 * time.Second
	retryInterval  = 200 * time.Millisecond
	apiPatience    = 2 * time.Minute // for an API server that has just come back
)

type object = map[string]any

// A node is the Node and the ConfigMaps, as an administrator sees and changes them.
type node struct {
	*cluster.Cluster
	client *http.Client // keeps no connection: the network is cut now and then

	mutex    sync.Mutex // guards what follows
	versions map[version]payload
	newest   map[string]version // by ConfigMap
	retries  int
}

// A version is one of a ConfigMap.
type version struct{ uid, resourceVersion string }

func newNode(c *cluster.Cluster) (*node, error) {
	client, err := c.KubeletHTTP() // its certificates are good for the API server as well
	if err != nil {
		return nil, err
	}
	return &node{Cluster: c, client: client, versions: map[version]payload{}, newest: map[string]version{}}, nil
}

// A view is what the Node says of its kubelet's configuration.
type view struct {
	truth
	observed  string
	config    corev1.NodeConfigStatus
	status    nodev1.Status
	condition corev1.NodeCondition
	ready     bool
	unknown   string // a version in config that is none of this program's; "": all are
	text      string // the Node as JSON
}

// view reads the Node.
func (n *node) view(ctx context.Context) (view, error) {
	var v view
	var read corev1.Node
	text, err := n.request(ctx, http.MethodGet, nodePath, nil)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		return v, err
	}
	v.text, v.observed = string(text), read.Annotations[nodev1.ConfigObservedAnnotation]
	v.ready = slices.ContainsFunc(read.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	says := nodev1.Read(&read)
	v.config, v.status, v.condition = says.Config, says.Status, says.Condition
	switch {
	case !says.Supervised:
		return v, fmt.Errorf("the Node has no annotation %s", nodev1.ConfigStatusAnnotation)
	case says.Problem != nil:
		return v, says.Problem
	}
	v.truth, v.unknown = n.truthOf(v.config)
	return v, nil
}

// truthOf translates versions into payloads.
func (n *node) truthOf(config corev1.NodeConfigStatus) (t truth, unknown string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for source, to := range map[*corev1.NodeConfigSource]*payload{config.Assigned: &t.assigned, config.Active: &t.active, config.LastKnownGood: &t.lastKnownGood} {
		if source == nil || source.ConfigMap == nil {
			continue
		}
		p, known := n.versions[version{string(source.ConfigMap.UID), source.ConfigMap.ResourceVersion}]
		if !known {
			unknown = fmt.Sprintf("%s/%s", source.ConfigMap.UID, source.ConfigMap.ResourceVersion)
		}
		*to = p
	}
	return t, unknown
}

// change does what a step does to the Node and the ConfigMaps.
func (n *node) change(ctx context.Context, s step, w world) error {
	if s.remove != "" {
		if err := n.insist(ctx, func() error { return n.remove(ctx, s.remove) }); err != nil {
			return err
		}
	}
	if name := s.put + s.label; name != "" {
		change := object{"data": object{payloadAt: n.text(s.payload)}}
		if s.label != "" {
			change = object{"metadata": object{"labels": object{"soak": fmt.Sprint(time.Now().UnixNano())}}}
		}
		if err := n.insist(ctx, func() error { return n.write(ctx, name, w.configMaps[name], change) }); err != nil {
			return err
		}
	}
	annotations := object{}
	if s.assign != nil {
		annotations[nodev1.ConfigSourceAnnotation] = *s.assign
		if *s.assign == "" {
			annotations[nodev1.ConfigSourceAnnotation] = nil
		}
	}
	if s.retry {
		n.retries++
		annotations[nodev1.RetryAnnotation] = fmt.Sprint(n.retries)
	}
	return n.annotate(ctx, annotations)
}

// annotate sets annotations of the Node; nil removes one.
func (n *node) annotate(ctx context.Context, annotations object) error {
	if len(annotations) == 0 {
		return nil
	}
	return n.insist(ctx, func() error {
		_, err := n.request(ctx, http.MethodPatch, nodePath, object{"metadata": object{"annotations": annotations}})
		return err
	})
}

// write patches a ConfigMap, or creates it, and notes which version has the payload.
func (n *node) write(ctx context.Context, name string, p payload, change object) error {
	answer, err := n.request(ctx, http.MethodPatch, mapsPath+"/"+name, change)
	if code(err) == http.StatusNotFound {
		change["metadata"] = object{"name": name}
		answer, err = n.request(ctx, http.MethodPost, mapsPath, change)
	}
	if err != nil {
		return err
	}
	var written corev1.ConfigMap
	if err := json.Unmarshal(answer, &written); err != nil {
		return err
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	v := version{string(written.UID), written.ResourceVersion}
	n.versions[v], n.newest[name] = p, v
	return nil
}

func (n *node) remove(ctx context.Context, name string) error {
	_, err := n.request(ctx, http.MethodDelete, mapsPath+"/"+name, nil)
	if code(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// isNewest tells whether a source is the present version of its ConfigMap.
func (n *node) isNewest(source *corev1.NodeConfigSource) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return source != nil && source.ConfigMap != nil &&
		n.newest[source.ConfigMap.Name] == version{string(source.ConfigMap.UID), source.ConfigMap.ResourceVersion}
}

// localLines are of the node's own configuration.
const localLines = "maxPods: 20\n"

// Static policies want reservations: of processors any, of memory what evictionHard takes.
const (
	staticCPULines    = "cpuManagerPolicy: static\nsystemReserved: {cpu: 200m}\n"
	staticMemoryLines = "memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 50Mi}}]\n"
)

// localText is the node's own configuration.
func (n *node) localText() string {
	return n.KubeletConfig() + "staticPodPath: " + n.staticPodPath() + "\n"
}

func (n *node) staticPodPath() string { return filepath.Join(n.Folder, "static-pods") }

// text is the KubeletConfiguration of a payload.
func (n *node) text(p payload) string {
	lines := fmt.Sprintf("maxPods: %d\n", p.number)
	text := n.localText()
	switch p {
	case payload{good, withStaticCPUs}:
		lines += staticCPULines
	case payload{good, withStaticMemory}:
		lines += staticCPULines + staticMemoryLines
	case payload{good, withLongLease}:
		lines += "nodeLeaseDurationSeconds: 300\n"
	case payload{deadly, deadlyWithStaticCPUs}:
		lines += "cpuManagerPolicy: static\nsystemReserved: {cpu: 200m, memory: 1Ti}\n"
	case payload{refused, 51}:
		text = strings.Replace(text, "eventRecordQPS: 7", "eventRecordQPS: -5", 1)
	case payload{refused, 52}:
		return "{0xdeadbeef}"
	case payload{refused, 53}:
		lines += "featureGates: {NoSuchGate: true}\n"
	case payload{deadly, 42}:
		lines += "systemReserved: {memory: 1Ti}\n"
	}
	if p.quality == deadly && p.number%2 == 1 {
		text = strings.Replace(text, n.Folder+"/pki/ca.crt", "/nonexistent/ca.crt", 1)
	}
	return strings.Replace(text, localLines, lines, 1)
}

// insist repeats what fails for a moment while the API server has just come back.
func (n *node) insist(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// request makes one request of the API server as admin. A PATCH is a merge patch.
func (n *node) request(ctx context.Context, method, path string, body object) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, apiServerURL+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := n.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = &statusError{response.StatusCode, fmt.Sprintf("%s %s: %s: %s", method, path, response.Status, answer)}
	}
	return answer, err
}

// A statusError is an answer that is not 2xx.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

func code(err error) int {
	var status *statusError
	if errors.As(err, &status) {
		return status.code
	}
	return 0
}
