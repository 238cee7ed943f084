//go:build linux

package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

const (
	leaseEvery  = 10 * time.Second // the kubelet's nodeLeaseDurationSeconds (40) × 0.25
	leaseWithin = 5 * time.Second
	leaseFolder = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
)

// renewLeases renews every node's Lease as its kubelet would, until ctx ends, and posts the Node's conditions after so many renewals. What
// fails is tried again when the next one is due.
func renewLeases(ctx context.Context, admin rest.Interface, nodes []node, posts int) {
	var renewing sync.WaitGroup
	workers := min(atOnce, len(nodes))
	for first := range workers {
		renewing.Go(func() {
			var own []lease
			for i := first; i < len(nodes); i += workers {
				own = append(own, lease{admin: admin, node: nodes[i].Name})
			}
			ticker := time.NewTicker(leaseEvery / time.Duration(len(own)))
			defer ticker.Stop()
			for i := 0; ; i++ {
				l := &own[i%len(own)]
				l.renew(ctx)
				if i/len(own)%posts == 0 {
					l.post(ctx)
				}
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	renewing.Wait()
}

// postsIn is after how many renewals a kubelet posts the Node's conditions, so that a trial sees it. A kubelet posts them at its start and
// every 5 minutes.
func postsIn(trial time.Duration) int { return max(1, min(3, int(trial/leaseEvery))) }

// A lease is that of one node.
type lease struct {
	admin   rest.Interface
	node    string
	version string // its resourceVersion; "" when that is not known
}

// renew makes, or reads, and then replaces the Lease, as the kubelet does (k8s.io/component-helpers/apimachinery/lease).
func (l *lease) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaseWithin)
	defer cancel()
	if l.version == "" {
		l.take(l.admin.Get().AbsPath(leaseFolder, l.node).DoRaw(ctx))
	}
	if l.version == "" {
		l.take(l.admin.Post().AbsPath(leaseFolder).SetHeader("Content-Type", "application/json").Body(l.object()).DoRaw(ctx))
		return
	}
	l.take(l.admin.Put().AbsPath(leaseFolder, l.node).SetHeader("Content-Type", "application/json").Body(l.object()).DoRaw(ctx))
}

// post says that the node is Ready, as the kubelet does at its start.
func (l *lease) post(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaseWithin)
	defer cancel()
	status := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	_ = l.admin.Patch(types.StrategicMergePatchType).Resource("nodes").Name(l.node).SubResource("status").Body(status).Do(ctx).Error()
}

func (l *lease) object() []byte {
	return fmt.Appendf(nil, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q,"namespace":"kube-node-lease","resourceVersion":%q},`+
		`"spec":{"holderIdentity":%[1]q,"leaseDurationSeconds":40,"renewTime":%[3]q}}`, l.node, l.version, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
}

// take remembers the version of the answer.
func (l *lease) take(answer []byte, err error) {
	var object struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	l.version = ""
	if err == nil && json.Unmarshal(answer, &object) == nil {
		l.version = object.Metadata.ResourceVersion
	}
}
