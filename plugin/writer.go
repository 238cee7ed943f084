package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// A writer writes assignments to Nodes, for one command. It asks once for what is the same for all nodes.
type writer struct {
	client kubernetes.Interface
	dry    cmdutil.DryRun
	by     string // user name reported by the API server
	now    func() time.Time

	probe      sync.Once
	keepsField bool // the API server keeps spec.configSource
}

func newWriter(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, dry cmdutil.DryRun) *writer {
	w := &writer{client: client, dry: dry, now: f.Now}
	if dry != cmdutil.DryRunClient {
		w.by = view.WhoAmI(ctx, client)
	}
	return w
}

// write assigns, and returns the resulting Node. Assignment and record go in one patch for the version of the Node
// that was read; otherwise an entry of another user could be lost. A Node that has changed in other ways is read
// again. pin goes into an annotation, because the field has no room for a uid.
func (w *writer) write(ctx context.Context, v view.Node, wanted nodev1.Assignment, pin string) (view.Node, error) {
	var after view.Node
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var err error
		after, err = w.writeOnce(ctx, v, wanted, pin)
		if !apierrors.IsConflict(err) {
			return err
		}
		now, failed := view.GetNode(ctx, w.client, v.Name)
		switch {
		case failed != nil:
			return failed
		case now.Says.Assignment != v.Says.Assignment || now.Says.Carrier != v.Says.Carrier:
			return fmt.Errorf("another user or program has assigned %q to it since it was read; look again", now.Says.Assignment)
		}
		v = now
		return err
	})
	if err != nil {
		return view.Node{}, fmt.Errorf("assigning %s to node %s: %w", wanted, v.Name, err)
	}
	return after, nil
}

func (w *writer) writeOnce(ctx context.Context, v view.Node, wanted nodev1.Assignment, pin string) (view.Node, error) {
	carrier := w.carrierFor(ctx, v, wanted)
	if carrier == nodev1.CarrierAnnotation && wanted.UID == "" && !wanted.IsLocal() {
		wanted.UID = pin
	}
	patch := patchOf(carrier, wanted)
	metadata := map[string]any{}
	if given, is := patch["metadata"].(map[string]any); is {
		maps.Copy(metadata, given)
	}
	annotations := map[string]any{}
	if given, is := metadata["annotations"].(map[string]any); is {
		maps.Copy(annotations, given)
	}
	if v.Says.Carrier != nodev1.CarrierNone || !wanted.IsLocal() { // otherwise nothing new is assigned
		record, err := v.RecordWith(view.Entry{Source: wanted.String(), Time: w.now(), By: w.by})
		if err != nil {
			return view.Node{}, err
		}
		annotations[view.RecordAnnotation] = record
	}
	metadata["annotations"] = annotations
	if v.ResourceVersion != "" {
		metadata["resourceVersion"] = v.ResourceVersion
	}
	patch["metadata"] = metadata
	node, err := cmdutil.PatchNode(ctx, w.client, v.Node, patch, w.dry)
	if err != nil {
		return view.Node{}, err
	}
	after := view.NodeOf(node)
	if now, ok := after.Current(); !ok || now != wanted {
		return view.Node{}, fmt.Errorf("the API server took it, but has %q now; did an admission webhook change it?", after.Says.Assignment)
	}
	return after, nil
}

// recordFailure writes the outcome of the newest entry if it is bad, because the next assignment may be made
// without this plugin, which would not write it. It ignores errors, because the command has failed already. A node
// that has just failed writes its own status at the same time.
func (w *writer) recordFailure(ctx context.Context, name string) {
	_ = retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.recordFailureOnce(ctx, name) })
}

func (w *writer) recordFailureOnce(ctx context.Context, name string) error {
	v, err := view.GetNode(ctx, w.client, name)
	if err != nil || !slices.Contains(view.BadOutcomes, v.Outcome()) {
		return err
	}
	now, ok := v.Current()
	entries, err := v.Record()
	last := len(entries) - 1
	if err != nil || !ok || last < 0 || !view.SameSource(entries[last].Source, now.String()) {
		return err
	}
	entries[last].Outcome = v.Outcome()
	text, err := view.EncodeRecord(entries)
	if err != nil {
		return err
	}
	metadata := map[string]any{"annotations": map[string]any{view.RecordAnnotation: text}}
	if v.ResourceVersion != "" {
		metadata["resourceVersion"] = v.ResourceVersion
	}
	_, err = cmdutil.PatchNode(ctx, w.client, v.Node, map[string]any{"metadata": metadata}, cmdutil.DryRunNone)
	return err
}
