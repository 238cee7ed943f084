package plugin

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// foresee gets the facts that the comparison lacks, and makes the forecast.
func foresee(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, v view.Node, compared document.Comparison) document.Impact {
	if compared.Unasked != nil {
		return document.UnknownImpact(compared.Unasked)
	}
	defaults, differ, known, err := document.LikelyDefaults(v.Status.NodeInfo.KubeletVersion)
	if err != nil {
		return document.UnknownImpact(err)
	}
	if known {
		compared.Defaults = defaults
	}
	expected, err := compared.Expect(differ)
	if err != nil {
		return document.UnknownImpact(err)
	}
	if known && expected.SameForPods() {
		return document.Impact{Text: "no running pod would be killed at the restart by this: no field that decides over them changes", Known: true}
	}
	facts, hostErr, err := nodeFacts(ctx, f, client, v)
	if err != nil {
		return document.UnknownImpact(err)
	}
	found := expected.Forecast(facts)
	var doubts []string
	if !found.Known && hostErr != nil {
		doubts = append(doubts, hostErr.Error())
	}
	if version := v.Status.NodeInfo.KubeletVersion; !known {
		found.Known = false
		doubts = append(doubts, "the defaults of "+version+" are not known to this program")
	} else if len(expected.Unsure) > 0 && !found.Known {
		doubts = append(doubts, "the default of "+strings.Join(expected.Unsure, ", ")+" in "+version+" is not known")
	}
	for _, doubt := range doubts {
		found.Text += "; " + doubt
	}
	found.Text = bounded.Text(bounded.Line(found.Text), document.ImpactLimit)
	return found
}

// nodeFacts returns the facts that the API server and the kubelet report. hostErr is nil if the kubelet reported
// its measurements.
func nodeFacts(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, v view.Node) (facts forecast.Facts, hostErr, err error) {
	facts.Node = v.Node
	var asked sync.WaitGroup
	asked.Go(func() { facts.Host, hostErr = f.Summary(ctx, client, v.Name) })
	var pods []corev1.Pod
	pods, err = f.Pods(ctx, client, v.Name)
	asked.Wait()
	facts.Pods = pods
	return facts, hostErr, err
}
