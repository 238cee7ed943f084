package plugin

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

const (
	impactPods  = 5   // that are named
	impactLimit = 600 // bytes of a line
)

// An impact is what a change would do to the running pods of one node.
type impact struct {
	text  string
	lost  int // for certain
	known bool
}

func unknownImpact(why error) impact {
	return impact{text: bounded.Text(bounded.Line("what would happen to running pods is not known: "+why.Error()), impactLimit)}
}

// foresee asks for what the comparison lacks, and makes the forecast.
func (s *session) foresee(ctx context.Context, client kubernetes.Interface, v nodeView, compared comparison) impact {
	if compared.unasked != nil {
		return unknownImpact(compared.unasked)
	}
	defaults, differ, known, err := likelyDefaults(v.Status.NodeInfo.KubeletVersion)
	if err != nil {
		return unknownImpact(err)
	}
	if known {
		compared.defaults = defaults
	}
	expected, err := compared.expect(differ)
	if err != nil {
		return unknownImpact(err)
	}
	if known && expected.sameForPods() {
		return impact{text: "no running pod would be killed at the restart by this: no field that decides over them changes", known: true}
	}
	facts, hostErr, err := s.nodeFacts(ctx, client, v)
	if err != nil {
		return unknownImpact(err)
	}
	found := expected.forecast(facts)
	var doubts []string
	if !found.known && hostErr != nil {
		doubts = append(doubts, hostErr.Error())
	}
	if version := v.Status.NodeInfo.KubeletVersion; !known {
		found.known = false
		doubts = append(doubts, "the defaults of "+version+" are not known to this program")
	} else if len(expected.unsure) > 0 && !found.known {
		doubts = append(doubts, "the default of "+strings.Join(expected.unsure, ", ")+" in "+version+" is not known")
	}
	for _, doubt := range doubts {
		found.text += "; " + doubt
	}
	found.text = bounded.Text(bounded.Line(found.text), impactLimit)
	return found
}

// nodeFacts are those that the API and the kubelet tell. Without hostErr the kubelet told what it measures.
func (s *session) nodeFacts(ctx context.Context, client kubernetes.Interface, v nodeView) (facts forecast.Facts, hostErr, err error) {
	facts.Node = v.Node
	var asked sync.WaitGroup
	asked.Go(func() { facts.Host, hostErr = s.summary(ctx, client, v.Name) })
	var pods []corev1.Pod
	pods, err = s.pods(ctx, client, v.Name)
	asked.Wait()
	facts.Pods = pods
	return facts, hostErr, err
}

// forecast makes the forecast for each configuration that may be. Where they differ, the text is that of all changes made.
func (e expectation) forecast(facts forecast.Facts) impact {
	facts.Now = e.now
	var found impact
	differ := e.untried || len(e.own) > 0
	for i, then := range e.then {
		facts.Then = then
		f := forecast.Of(facts)
		text := f.Sentence(impactPods)
		if len(f.Doubts) > 0 {
			text += "; not known: " + f.Doubts[0].String()
		}
		if i == 0 {
			found = impact{text: text, lost: f.Harm(), known: f.Sure()}
			continue
		}
		differ = differ || text != found.text
		found.lost, found.known = min(found.lost, f.Harm()), found.known && f.Sure()
	}
	if e.untried || len(e.own) > 0 {
		found.lost = 0
	}
	if differ {
		found.known = false
		if len(e.keepers) > 0 {
			found.text += "; unless a kubelet flag or a drop-in file of the node sets " + strings.Join(e.keepers, ", ")
		}
		if len(e.own) > 0 {
			found.text += "; not counted, for the node alone knows its own file: " + strings.Join(e.own, ", ")
		}
	}
	return found
}
