package rollout

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// historyOptions are the flags of rollout history.
type historyOptions struct {
	*cmdutil.Factory
	pool   string
	number int64 // the revision to show, if asked is set
	asked  bool
	print  *genericclioptions.PrintFlags
}

func newHistory(f *cmdutil.Factory) *cobra.Command {
	o := &historyOptions{Factory: f, print: genericclioptions.NewPrintFlags("")}
	command := &cobra.Command{
		Use:   "history POOL",
		Short: "Show the revisions of a pool, and what became of each",
		Long: `Show the revisions that are kept of a pool, oldest first: what each changed against the one before it, and what became of it. With --revision,
one of them as it is kept, whole.`,
		Example: `  kubectl kubelet rollout history workers
  kubectl kubelet rollout history workers --revision=6`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.CompletePools,
		RunE:              cmdutil.RunE(o),
	}
	command.Flags().Int64Var(&o.number, "revision", 0, "show this revision whole")
	o.print.AddFlags(command)
	return command
}

// Complete takes the name of the pool.
func (o *historyOptions) Complete(command *cobra.Command, arguments []string) error {
	o.pool, o.asked = arguments[0], command.Flags().Changed("revision")
	return nil
}

// Validate refuses numbers that no revision has.
func (o *historyOptions) Validate() error {
	if o.number < 0 || o.asked && o.number == 0 {
		return errors.New("--revision counts from 1; the nodes' own configuration is no revision")
	}
	return nil
}

// Run prints the revisions.
func (o *historyOptions) Run(ctx context.Context) error {
	client, _, p, err := openPool(ctx, o.Factory, o.pool)
	if err != nil {
		return err
	}
	kept, err := view.ReadRevisions(ctx, client, p.Name)
	if err != nil {
		return err
	}
	if o.number > 0 {
		i := slices.IndexFunc(kept, func(r view.Revision) bool { return r.Number == o.number })
		if i < 0 {
			return fmt.Errorf("pool %s has no revision %d; see kubectl kubelet rollout history %s", p.Name, o.number, p.Name)
		}
		kept = kept[i : i+1]
	}
	switch {
	case *o.print.OutputFormat != "":
		return printRevisions(o.Factory, p, kept, o.print)
	case o.number > 0:
		return describeRevision(o.Factory, p, kept[0])
	case len(kept) == 0:
		o.Note("Pool %s has no revision yet.", p.Name)
		return nil
	}
	return writeRevisions(o.Factory, p, kept)
}

func writeRevisions(f *cmdutil.Factory, p pool, kept []view.Revision) error {
	t := view.NewTable(f.Out, "REVISION", "AGE", "RESULT", "PROVEN", "CHANGE", "NOTE")
	var before *rollout.Revision
	for i := range kept {
		r := &kept[i]
		result, proven := p.resultOf(r)
		change := "not what it was"
		if !r.Tampered {
			change = view.ChangeText(before, &r.Revision, 3)
			before = &r.Revision
		}
		t.Row(strconv.FormatInt(r.Number, 10), view.Age(f.Now(), r.Made), result, proven, cmp.Or(change, "none"), p.noteOn(r))
	}
	return t.Flush()
}

// resultOf returns what became of a revision, as far as the status remembers.
func (p pool) resultOf(r *view.Revision) (result, proven string) {
	for _, known := range p.Status.Revisions {
		if known.Hash == r.Hash && known.Revision == r.Number {
			return cmp.Or(string(known.Result), "<unknown>"), strconv.Itoa(int(known.Proven))
		}
	}
	return "<unknown>", "<unknown>"
}

// noteOn returns what a revision is to its pool now, and the users' change cause.
func (p pool) noteOn(r *view.Revision) string {
	var words []string
	is := func(name v1alpha1.RevisionName) bool { return name.Revision == r.Number && name.Hash == r.Hash }
	if t := p.Status.Target; t != nil && is(t.RevisionName) {
		words = append(words, "target")
	}
	if s := p.Status.Stable; s != nil && is(*s) {
		words = append(words, "stable")
	}
	if pin := p.Spec.Rollout.Pin; pin != nil && pin.Revision == r.Number {
		words = append(words, "pinned")
	}
	var notes []string
	if len(words) > 0 {
		notes = append(notes, strings.Join(words, ", "))
	}
	if stop := p.StopOf(r.Hash); stop != nil {
		notes = append(notes, fmt.Sprintf("stopped in attempt %d: %s", stop.Attempt, view.Shorten(view.StopText(*stop), 160)))
	}
	if r.Cause != "" {
		notes = append(notes, view.Shorten(bounded.Line(r.Cause), 80))
	}
	return strings.Join(notes, "; ")
}

// describeRevision prints a whole revision.
func describeRevision(f *cmdutil.Factory, p pool, r view.Revision) error {
	if r.Tampered {
		return fmt.Errorf("pool %s: what is kept of revision %d is not what it was", p.Name, r.Number)
	}
	t := view.NewTable(f.Out)
	result, _ := p.resultOf(&r)
	t.Row("Pool:", p.Name)
	t.Row("Revision:", strconv.FormatInt(r.Number, 10), p.noteOn(&r))
	t.Row("Hash:", r.Hash)
	t.Row("Made:", view.Age(f.Now(), r.Made)+" ago")
	t.Row("Result:", result)
	t.Row("Base:", string(r.Base))
	if err := t.Flush(); err != nil {
		return err
	}
	for _, layer := range r.Layers {
		of := ""
		if layer.NodeSelector != "" {
			of = ", for nodes with " + bounded.Line(layer.NodeSelector)
		}
		text, err := yaml.JSONToYAML(maskedPatch(layer.Patch))
		if err != nil {
			return fmt.Errorf("writing layer %s: %w", layer.Name, err)
		}
		_, _ = fmt.Fprintf(f.Out, "Layer %s (%s)%s:\n", layer.Name, bounded.Line(layer.From), of)
		for line := range strings.Lines(string(text)) {
			words := strings.TrimLeft(line, " ")
			_, _ = fmt.Fprintln(f.Out, "  "+strings.Repeat(" ", len(line)-len(words))+view.Shorten(bounded.Line(words), view.MaxCell))
		}
	}
	return nil
}

// maskedPatch returns what a layer sets, as JSON without secrets; null if it does not decode.
func maskedPatch(patch []byte) []byte {
	tree, err := kubeletconfig.Decode(patch)
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err != nil || encoder.Encode(kubeletconfig.Masked(tree)) != nil {
		return []byte("null")
	}
	return bytes.TrimSpace(text.Bytes())
}

// printRevisions prints revisions in the form of a Kubernetes object, kind KubeletPoolRevisions.
func printRevisions(f *cmdutil.Factory, p pool, kept []view.Revision, print *genericclioptions.PrintFlags) error {
	printer, err := print.ToPrinter()
	if err != nil {
		return err
	}
	var list []any
	for i := range kept {
		r := &kept[i]
		result, _ := p.resultOf(r)
		printed := map[string]any{"revision": r.Number, "hash": r.Hash, "result": result, "base": string(r.Base), "tampered": r.Tampered}
		if !r.Made.IsZero() {
			printed["time"] = r.Made.UTC().Format(time.RFC3339)
		}
		if r.Cause != "" {
			printed["cause"] = r.Cause
		}
		var layers []any
		for j := range r.Layers {
			layer := &r.Layers[j]
			layers = append(layers, map[string]any{"name": layer.Name, "from": layer.From, "nodeSelector": layer.NodeSelector, "patch": string(maskedPatch(layer.Patch))})
		}
		printed["layers"] = layers
		list = append(list, printed)
	}
	return f.PrintWhole(*print.OutputFormat, printer, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(map[string]any{
		"apiVersion": "kubelet-supervisor.io/v1", "kind": "KubeletPoolRevisions", "metadata": map[string]any{"name": p.Name}, "revisions": list,
	})})
}
