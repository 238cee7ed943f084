package plugin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

const (
	previewParallel = 20
	// previewTime limits how long a preview takes, even if many kubelets hang.
	previewTime = time.Minute
)

// preview prints what an assignment would change, once for nodes with the same change, and what happens to each
// node's running pods. A node that does not answer does not delay the others.
func preview(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, views []view.Node, wanted nodev1.Assignment, written document.Document) {
	texts, impacts := previewNodes(ctx, f, client, views, written)
	for _, alike := range grouped(texts) {
		f.Note("%s, with %s:", namesOf(views, alike), wanted)
		for line := range strings.Lines(texts[alike[0]]) {
			f.Note("%s", strings.TrimRight(line, "\n"))
		}
		var lines []string
		for _, i := range alike {
			lines = append(lines, impacts[i])
		}
		for _, same := range grouped(lines) {
			switch line := lines[same[0]]; {
			case line == "":
			case len(same) == len(alike):
				f.Note("  %s", line)
			default:
				for i := range same {
					same[i] = alike[same[i]]
				}
				f.Note("  %s: %s", namesOf(views, same), line)
			}
		}
	}
}

// grouped returns the indexes of equal texts, ordered by their first occurrence.
func grouped(texts []string) (groups [][]int) {
	at := map[string]int{}
	for i, text := range texts {
		group, is := at[text]
		if !is {
			group = len(groups)
			at[text], groups = group, append(groups, nil)
		}
		groups[group] = append(groups[group], i)
	}
	return groups
}

func namesOf(views []view.Node, places []int) string {
	var names []string
	for _, i := range places {
		names = append(names, views[i].Name)
	}
	return strings.Join(names, ", ")
}

// previewNodes returns, for each node, what would change, and a line about its running pods.
func previewNodes(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, views []view.Node, written document.Document) (texts, impacts []string) {
	texts, impacts = make([]string, len(views)), make([]string, len(views))
	read := onceEach(client)
	askNodes(ctx, views, func(ctx context.Context, i int) {
		texts[i], impacts[i] = previewNode(ctx, f, client, read, views[i], written)
	})
	return texts, impacts
}

// askNodes asks about many nodes in parallel, for at most a minute. The answers contain the errors.
func askNodes(ctx context.Context, views []view.Node, ask func(ctx context.Context, i int)) {
	ctx, cancel := context.WithTimeoutCause(ctx, previewTime, fmt.Errorf("the preview took longer than %s", previewTime))
	defer cancel()
	var group errgroup.Group
	group.SetLimit(previewParallel)
	for i := range views {
		group.Go(func() error {
			ask(ctx, i)
			return nil
		})
	}
	_ = group.Wait()
}

func previewNode(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, read configMapReader, v view.Node, written document.Document) (changes, pods string) {
	var text bytes.Buffer
	if !v.Says.Supervised {
		_, _ = fmt.Fprintln(&text, "  No supervisor has met this node yet: nothing happens until one does.")
	}
	compared, err := compareWith(ctx, f, client, read, v, written)
	if err != nil {
		_, _ = fmt.Fprintf(&text, "  What would change is not known: %s\n", view.Shorten(bounded.Line(err.Error()), view.MaxError))
		return text.String(), ""
	}
	writeComparison(&text, compared, v)
	if compared.ChangesNothing() {
		return text.String(), ""
	}
	return text.String(), foresee(ctx, f, client, v, compared).Text
}

func writeComparison(to io.Writer, compared document.Comparison, v view.Node) {
	changes := compared.Changes()
	switch {
	case len(changes) > 0:
	case compared.OwnUnknown:
		_, _ = fmt.Fprintln(to, "  Nothing changes of what the layers set.")
	default:
		_, _ = fmt.Fprintln(to, "  Nothing changes: the kubelet runs with these values.")
	}
	document.WriteChanges(to, changes)
	if compared.Caveat != "" {
		_, _ = fmt.Fprintln(to, "  "+compared.Caveat)
	}
	if compared.ActiveOver != nil && len(changes) > 0 {
		_, _ = fmt.Fprintln(to, "  What kubelet flags and drop-in files of the node set stays as it is. Which fields those are is known of those alone that the layers set which the node runs.")
	}
	if compared.Active == nil && len(changes) > 0 {
		_, _ = fmt.Fprintln(to, "  What kubelet flags and drop-in files of the node set stays as it is. Which fields those are is not known while the node runs "+activeText(v)+".")
	}
}

func activeText(v view.Node) string {
	if active := nodev1.AssignmentOf(v.Says.Config.Active); !active.IsLocal() {
		return "a version of " + bounded.Line(active.String()) + " that cannot be read"
	}
	return "its own configuration"
}

// compareOne gathers what is known about a node for a comparison: from its kubelet if it answers, else from the
// configuration that the node reports as active.
func compareOne(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, v view.Node, written document.Document) (document.Comparison, error) {
	return compareWith(ctx, f, client, onceEach(client), v, written)
}

func compareWith(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, read configMapReader, v view.Node, written document.Document) (document.Comparison, error) {
	defaults, version, exact, err := document.Defaults(v.Status.NodeInfo.KubeletVersion)
	if err != nil {
		return document.Comparison{}, err
	}
	kubelet := kubeletconfig.Minor(v.Status.NodeInfo.KubeletVersion)
	active, activeOver := activeDocument(ctx, read, v)
	c := document.Comparison{Wanted: written.Tree, Over: written.Over, Defaults: defaults, Kubelet: kubelet, Active: active, ActiveOver: activeOver}
	c.OwnUnknown = c.Over != nil && c.ActiveOver == nil && !nodev1.AssignmentOf(v.Says.Config.Active).IsLocal()
	var caveats []string
	if c.OwnUnknown {
		caveats = append(caveats, "The node runs a whole file. What the layers do not set becomes as the node's own file has it, which is not known from here.")
	}
	if !exact {
		caveats = append(caveats, fmt.Sprintf("Defaults are those of Kubernetes %s; the node runs %s.", version, v.Kubelet()))
	}
	c.Running, err = f.Configz(ctx, client, v.Name)
	if c.Unasked = err; err != nil {
		if c.Active == nil || c.ActiveOver != nil || c.Over != nil {
			return document.Comparison{}, err
		}
		caveats = append(caveats, "Compared with the active ConfigMap, without flags and drop-in files of the node: "+bounded.Line(err.Error()))
		c.Running = document.WithDefaults(c.Active, defaults)
	}
	c.Caveat = strings.Join(caveats, " ")
	return c, nil
}

// A configMapReader reads a ConfigMap.
type configMapReader func(ctx context.Context, r nodev1.Assignment) (*corev1.ConfigMap, error)

// onceEach returns a reader that reads each ConfigMap once, for all nodes that run it.
func onceEach(client kubernetes.Interface) configMapReader {
	type answer struct {
		found *corev1.ConfigMap
		err   error
	}
	var mutex sync.Mutex
	answers := map[nodev1.Assignment]answer{}
	return func(ctx context.Context, r nodev1.Assignment) (*corev1.ConfigMap, error) {
		mutex.Lock()
		defer mutex.Unlock()
		known, is := answers[r]
		if !is {
			known.found, _, known.err = view.GetConfigMap(ctx, client, r)
			answers[r] = known
		}
		return known.found, known.err
	}
}

// activeDocument reads the ConfigMap that the node reports as active; nil unless the version matches.
func activeDocument(ctx context.Context, read configMapReader, v view.Node) (tree map[string]any, over *document.Layered) {
	active := nodev1.AssignmentOf(v.Says.Config.Active)
	if active.IsLocal() {
		return nil, nil
	}
	found, err := read(ctx, active)
	if err != nil || !view.IsVersion(found, v.Says.Config.Active) {
		return nil, nil
	}
	d, err := document.Read(document.Payload(found), active.Key)
	if err != nil {
		return nil, nil
	}
	return d.Tree, d.Over
}
