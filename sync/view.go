package sync

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// view is what was seen of Node and ConfigMap so far, and what was reported of it. It has one owner, Run.
type view struct {
	options Options
	logger  *zap.Logger

	node    nodeView
	wanted  assignment
	payload payloadView
	told    *Update
}

type nodeView struct {
	known   bool // seen at least once, or seen to be missing
	gone    bool
	uid     string
	retry   string
	consent string
	problem *Problem
}

// payloadView is pending while source, configMap and problem are nil.
type payloadView struct {
	source  *corev1.ConfigMapNodeConfigSource
	data    map[string]string
	problem *Problem
	asked   time.Time
}

// sawNode takes in a look at the Node and reports whether another ConfigMap has to be followed from now on.
func (v *view) sawNode(seen seen) (retarget bool) {
	before := v.download()
	if seen.err != nil {
		// Without an answer about the Node itself nothing is known to have changed, and there was nothing to read.
		if final(seen.err) {
			v.node.known = true
			v.node.problem = &Problem{Error: internalError, Words: fmt.Sprintf("Node %s cannot be read: %s", v.options.NodeName, because(seen.err))}
		}
		return false
	}
	v.node = nodeView{known: true, gone: seen.object == nil}
	v.wanted = assignment{}
	if !v.node.gone {
		annotations := seen.object.GetAnnotations()
		v.node.uid = string(seen.object.GetUID())
		v.node.retry = retryOf(annotations[nodev1.RetryAnnotation])
		v.node.consent = bounded.Text(annotations[nodev1.AllowDisruptionAnnotation], maxConsent)
		var annotation *string
		if text, ok := annotations[nodev1.ConfigSourceAnnotation]; ok {
			annotation = &text
		}
		var configSource *corev1.NodeConfigSource // metadata alone is only watched where there is none
		if node, ok := seen.object.(*corev1.Node); ok {
			configSource = node.Spec.ConfigSource
		}
		v.wanted = assignmentOf(annotation, configSource, v.options.Namespaces)
	}
	// Another key, too, is answered by a fresh look: the ConfigMap may have been edited right before the assignment.
	if retarget = !equal(before, v.download()); retarget {
		v.payload = payloadView{asked: time.Now()}
	}
	return retarget
}

// download is the source to download, nil when there is none, or when it may not be.
func (v *view) download() *corev1.ConfigMapNodeConfigSource {
	if v.wanted.problem != nil {
		return nil
	}
	return v.wanted.source
}

func (v *view) sawPayload(seen seen) {
	wanted := v.download()
	if seen.err != nil {
		if v.payload.source == nil || final(seen.err) {
			v.payload = payloadView{problem: unreadable(wanted, seen.err)}
		}
		return
	}
	found, _ := seen.object.(*corev1.ConfigMap)
	source, data, problem := resolve(wanted, found, v.options.MaxPayload)
	asked := v.payload.asked
	if v.payload.source != nil || v.payload.problem != nil { // it was downloaded before, or could not be: this change was not asked for
		asked = time.Now()
	}
	v.payload = payloadView{source, data, problem, asked}
}

// news returns what has to be reported, unless it was reported already or is not known yet.
func (v *view) news() (Update, bool) {
	update, known := v.update()
	if !known || v.told != nil && v.told.same(update) {
		return Update{}, false
	}
	if update.Problem != nil {
		v.logger.Warn("the assigned configuration cannot be had",
			zap.String("assignment", bounded.Text(update.Text, 256)), zap.String("reason", update.Problem.Words))
	}
	v.told = &update
	return update, true
}

func (v *view) update() (update Update, known bool) {
	if !v.node.known || v.node.gone {
		return Update{NodeGone: true}, v.node.known
	}
	update = Update{Text: v.wanted.text, NodeUID: v.node.uid, Retry: v.node.retry, Consent: v.node.consent, Shadowed: v.wanted.shadowed}
	switch {
	case v.node.problem != nil:
		update.Problem = v.node.problem
	case v.wanted.problem != nil:
		update.Problem = v.wanted.problem
	case v.wanted.source == nil:
		update.Local = true
	default:
		update.Source, update.Payload, update.Problem, update.Asked = v.payload.source, v.payload.data, v.payload.problem, v.payload.asked
		return update, update.Source != nil || update.Problem != nil
	}
	return update, true
}
