package status

import (
	"cmp"
	"context"
	"math/rand/v2"
	"reflect"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// defaultCheck is how often the Node is read, ±20 %, to see whether it still shows what was published: any user with
// the right may remove or change it, and an etcd that is restored from a backup forgets it.
const defaultCheck = 10 * time.Minute

// checkSoon is how soon it is read where a patch got no answer, doubling: a network that was cut delivers the patch
// when it is back, and it takes the place of a newer one (seen in a soak).
const checkSoon = 15 * time.Second

// shown is what a Node shows of ours, except times.
type shown struct {
	annotations     map[string]string
	status          corev1.ConditionStatus
	reason, message string
	config          *corev1.NodeConfigStatus
}

func shownBy(node *corev1.Node) shown {
	s := shown{annotations: map[string]string{}, config: node.Status.Config}
	for _, key := range nodev1.AnnotationsOfTheNode() {
		if value, is := node.Annotations[key]; is {
			s.annotations[key] = value
		}
	}
	if c := nodev1.ConditionOf(node); c != nil {
		s.status, s.reason, s.message = c.Status, c.Reason, c.Message
	}
	return s
}

// scheduleCheck delays the next look at the Node, because it has just been seen.
func (p *Publisher) scheduleCheck() {
	every := cmp.Or(p.soon, p.options.CheckEvery)
	p.checkAt = time.Now().Add(every - every/5 + rand.N(2*every/5))
}

func (p *Publisher) checkDue() bool {
	return !p.flushing && !p.checkAt.IsZero() && !time.Now().Before(p.checkAt)
}

// check reads the Node, and publishes again what is no longer there. It compares with what the Node showed after the
// patch, so that what an API server changes in a patch is not written for ever. The Node is known here: once it is no
// longer true, what it shows is published again first.
func (p *Publisher) check(ctx context.Context) error {
	node, err := p.read(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if p.soon *= 2; p.soon >= p.options.CheckEvery {
		p.soon = 0
	}
	p.scheduleCheck()
	if err == nil && p.options.OnLooked != nil {
		p.options.OnLooked(node.ResourceVersion)
	}
	switch {
	case err != nil: // NodeRecreated will report it
	case node.UID != p.node.uid:
		p.NodeRecreated()
	case !reflect.DeepEqual(shownBy(node), p.node.shows):
		p.logger.Warn("the Node no longer shows what was published on it; it is published again", zap.String("node", p.options.NodeName))
		p.node.says = nodev1.Read(node)
		p.mutex.Lock()
		p.again()
		p.mutex.Unlock()
	}
	if err == nil && keepsFields(node) { // else they may be what was lost
		p.learnKeeps(true)
	}
	return nil
}
