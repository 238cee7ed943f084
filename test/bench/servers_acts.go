//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A nodeAct is a request with the credential of node n1. The API server keeps nothing of it.
type nodeAct struct {
	name, verb, path, body string
	refusedSince           int // the minor version of the API server; always or never
}

const (
	always = 0
	never  = math.MaxInt // the node needs it

	otherNode = "n2"
)

// nodeActs are what docs/why/security.md says that a node needs, and what a node must not do.
func nodeActs() []nodeAct {
	const (
		own, other   = "/api/v1/nodes/" + cluster.NodeName, "/api/v1/nodes/" + otherNode
		configs      = "/api/v1/namespaces/" + deploy.Namespace + "/configmaps"
		pools        = "/apis/kubelet-supervisor.io/v1alpha1/kubeletpools"
		bindings     = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + deploy.Namespace + "/rolebindings"
		assign       = `{"metadata":{"annotations":{"kubelet-supervisor.io/config-source":"kubelet-config/other/kubelet"}}}`
		says         = `{"metadata":{"annotations":{"kubelet-supervisor.io/config-observed":"local"}}}`
		event        = `{"metadata":{"name":"bench"},"involvedObject":{"kind":"Node","name":"n1"},"reason":"Bench"}`
		configMap    = `{"metadata":{"name":"bench"},"data":{"kubelet":"a"}}`
		empty        = `{"data":{"kubelet":"a"}}`
		binding      = `{"metadata":{"name":"bench"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"kubelet-supervisor-operator"}}`
		watches      = "&watch=true&timeoutSeconds=1"
		byName       = "?fieldSelector=metadata.name="
		podsOf       = "/api/v1/pods?fieldSelector=spec.nodeName="
		lease        = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"
		get          = http.MethodGet
		patch, write = http.MethodPatch, http.MethodPost
	)
	return []nodeAct{
		{"get its Node", get, own, "", never},
		{"list its Node by name", get, "/api/v1/nodes" + byName + cluster.NodeName, "", never},
		{"watch its Node by name", get, "/api/v1/nodes" + byName + cluster.NodeName + watches, "", never},
		{"patch its Node's status", patch, own + "/status", says, never},
		{"list the pods of its Node", get, podsOf + cluster.NodeName, "", never},
		{"create an Event", write, "/api/v1/namespaces/default/events", event, never},
		{"get its Lease", get, lease + cluster.NodeName, "", never},
		{"get a configuration", get, configs + "/bench", "", never},
		{"list configurations by name", get, configs + byName + "bench", "", never},
		{"watch configurations by name", get, configs + byName + "bench" + watches, "", never},

		{"assign itself", patch, own, assign, hasPolicies},
		{"assign itself by its status", patch, own + "/status", assign, hasPolicies},
		{"get another Node", get, other, "", hidesNodes},
		{"list the pods of another Node", get, podsOf + otherNode, "", hidesNodes},
		{"assign another Node", patch, other, assign, always},
		{"write another Node's words", patch, other + "/status", says, always},
		{"get another node's Lease", get, lease + otherNode, "", always},
		{"create a configuration", write, configs, configMap, always},
		{"change a configuration", patch, configs + "/bench", empty, always},
		{"delete a configuration", http.MethodDelete, configs + "/bench", "", always},
		{"bind itself to the operator's Role", write, bindings, binding, always},
		{"get a ConfigMap of another namespace", get, "/api/v1/namespaces/default/configmaps/bench", "", always},
		{"get a Secret", get, "/api/v1/namespaces/" + deploy.Namespace + "/secrets/bench", "", always},
		{"list pools", get, pools, "", always},
		{"write a pool's status", patch, pools + "/bench/status", `{"status":{}}`, always},
	}
}

// refused sends the request, as a dry run where it would change something. What is not there is not refused.
func (a nodeAct) refused(ctx context.Context, as *rest.RESTClient) (bool, error) {
	path, query, _ := strings.Cut(a.path, "?")
	request := as.Verb(a.verb).AbsPath(path)
	for parameter := range strings.SplitSeq(query, "&") {
		if name, value, is := strings.Cut(parameter, "="); is {
			request.Param(name, value)
		}
	}
	if a.verb != http.MethodGet {
		request.Param("dryRun", metav1.DryRunAll).SetHeader("Content-Type", "application/json")
	}
	if a.verb == http.MethodPatch {
		request.SetHeader("Content-Type", string(types.MergePatchType))
	}
	if a.body != "" {
		request.Body([]byte(a.body))
	}
	_, err := request.DoRaw(ctx)
	if apierrors.IsForbidden(err) {
		return true, nil
	}
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return false, err
}

// rights starts the node, and sends each request with the credential of its kubelet.
func (s *newcomer) rights(ctx context.Context) (brief, words string, err error) {
	if s.supervisor, err = s.supervisorProcess("server", s.node.kubelet(), "--trial-period=5s"); err != nil {
		return "", "", err
	}
	if err := s.node.awaitNode(ctx, "local, and that it is ready", func(v view) bool { return v.local() && v.ready }); err != nil {
		return "", "", fmt.Errorf("%w%s", err, s.supervisor.LastWords())
	}
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: otherNode}}
	if err := s.node.client.Post().Resource("nodes").Body(other).Do(ctx).Error(); err != nil {
		return "", "", err
	}
	defer func() {
		err = errors.Join(err, s.node.client.Delete().Resource("nodes").Name(otherNode).Do(ctx).Error())
	}()
	identity, err := s.cluster.IdentityConfig("system:node:"+cluster.NodeName, "system:nodes")
	if err != nil {
		return "", "", err
	}
	as, err := configsync.NewClient(identity)
	if err != nil {
		return "", "", err
	}
	var seen rightsSeen
	// A policy holds a moment after it was installed.
	err = await(ctx, "the node has the rights that the page says", func() (err error) {
		seen, err = s.seeRights(ctx, as)
		return err
	})
	return seen.brief(), seen.words(), err
}

// rightsSeen are names of acts.
type rightsSeen struct{ needed, refused, open []string }

func (s *newcomer) seeRights(ctx context.Context, as *rest.RESTClient) (seen rightsSeen, err error) {
	for _, a := range nodeActs() {
		refused, failed := a.refused(ctx, as)
		switch {
		case failed != nil:
			err = errors.Join(err, fmt.Errorf("%s: %w", a.name, failed))
		case refused != (s.minor >= a.refusedSince):
			err = errors.Join(err, fmt.Errorf("%s: that the node is refused is %t", a.name, refused))
		case refused:
			seen.refused = append(seen.refused, a.name)
		case a.refusedSince == never:
			seen.needed = append(seen.needed, a.name)
		default:
			seen.open = append(seen.open, a.name)
		}
	}
	return seen, err
}

func (r rightsSeen) brief() string {
	text := fmt.Sprintf("%d needed, %d refused", len(r.needed), len(r.refused))
	if len(r.open) > 0 {
		text += fmt.Sprintf(", **%d open**", len(r.open))
	}
	return text
}

func (r rightsSeen) words() string {
	text := "may: " + strings.Join(r.needed, ", ") + "; may not: " + strings.Join(r.refused, ", ")
	if len(r.open) > 0 {
		text += "; may, and may not with a newer API server: " + strings.Join(r.open, ", ")
	}
	return text
}
