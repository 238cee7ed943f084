package plugin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

const (
	previewParallel = 20
	// previewTime is how long a person waits for a preview at most, however many kubelets hang.
	previewTime = time.Minute
)

// preview tells what assigning would change, once for nodes where it is the same. A node that does not answer holds up no other.
func (s *session) preview(ctx context.Context, client kubernetes.Interface, views []nodeView, wanted reference, written document) {
	texts := s.previewNodes(ctx, client, views, written)
	var order []string
	nodes := map[string][]string{}
	for i, text := range texts {
		if nodes[text] == nil {
			order = append(order, text)
		}
		nodes[text] = append(nodes[text], views[i].Name)
	}
	for _, text := range order {
		s.note("%s, with %s:\n%s", strings.Join(nodes[text], ", "), wanted, strings.TrimRight(text, "\n"))
	}
}

func (s *session) previewNodes(ctx context.Context, client kubernetes.Interface, views []nodeView, written document) []string {
	ctx, cancel := context.WithTimeoutCause(ctx, previewTime, fmt.Errorf("the preview took longer than %s", previewTime))
	defer cancel()
	texts := make([]string, len(views))
	read := onceEach(client)
	var group errgroup.Group
	group.SetLimit(previewParallel)
	for i, v := range views {
		group.Go(func() error {
			texts[i] = s.previewNode(ctx, client, read, v, written)
			return nil
		})
	}
	_ = group.Wait() // what fails is in the text
	return texts
}

func (s *session) previewNode(ctx context.Context, client kubernetes.Interface, read configMapReader, v nodeView, written document) string {
	var text bytes.Buffer
	if !v.supervised {
		_, _ = fmt.Fprintln(&text, "  No supervisor has met this node yet: nothing happens until one does.")
	}
	compared, err := s.compareWith(ctx, client, read, v, written)
	if err != nil {
		_, _ = fmt.Fprintf(&text, "  What would change is not known: %v\n", err)
		return text.String()
	}
	writeComparison(&text, compared, v)
	return text.String()
}

func writeComparison(to io.Writer, compared comparison, v nodeView) {
	changes := compared.changes()
	if len(changes) == 0 {
		_, _ = fmt.Fprintln(to, "  Nothing changes: the kubelet runs with these values.")
	}
	writeChanges(to, changes)
	if compared.caveat != "" {
		_, _ = fmt.Fprintln(to, "  "+compared.caveat)
	}
	if compared.active == nil && len(changes) > 0 {
		_, _ = fmt.Fprintln(to, "  What kubelet flags and drop-in files of the node set stays as it is. Which fields those are is not known while the node runs "+activeText(v)+".")
	}
}

func activeText(v nodeView) string {
	if active := referenceTo(v.config.Active); !active.local() {
		return "a version of " + bounded.Line(active.String()) + " that cannot be read"
	}
	return "its own configuration"
}

// compare gathers what is known about a node for a comparison: of its kubelet if it can be asked, else of the configuration that it
// says it runs.
func (s *session) compare(ctx context.Context, client kubernetes.Interface, v nodeView, written document) (comparison, error) {
	return s.compareWith(ctx, client, onceEach(client), v, written)
}

func (s *session) compareWith(ctx context.Context, client kubernetes.Interface, read configMapReader, v nodeView, written document) (comparison, error) {
	defaults, version, exact, err := defaultsOf(v.Status.NodeInfo.KubeletVersion)
	if err != nil {
		return comparison{}, err
	}
	kubelet := config.Minor(v.Status.NodeInfo.KubeletVersion)
	c := comparison{wanted: written.tree, defaults: defaults, kubelet: kubelet, active: activeDocument(ctx, read, v)}
	var caveats []string
	if !exact {
		caveats = append(caveats, fmt.Sprintf("Defaults are those of Kubernetes %s; the node runs %s.", version, bounded.Line(v.Status.NodeInfo.KubeletVersion)))
	}
	c.running, err = s.configz(ctx, client, v.Name)
	if err != nil {
		if c.active == nil {
			return comparison{}, err
		}
		caveats = append(caveats, "Compared with the active ConfigMap, without flags and drop-in files of the node: "+bounded.Line(err.Error()))
		c.running = withDefaults(c.active, defaults)
	}
	c.caveat = strings.Join(caveats, " ")
	return c, nil
}

// A configMapReader reads a ConfigMap.
type configMapReader func(ctx context.Context, r reference) (*corev1.ConfigMap, error)

// onceEach reads each ConfigMap once, for all nodes that run it.
func onceEach(client kubernetes.Interface) configMapReader {
	type answer struct {
		found *corev1.ConfigMap
		err   error
	}
	var mutex sync.Mutex
	answers := map[reference]answer{}
	return func(ctx context.Context, r reference) (*corev1.ConfigMap, error) {
		mutex.Lock()
		defer mutex.Unlock()
		known, is := answers[r]
		if !is {
			known.found, _, known.err = getConfigMap(ctx, client, r)
			answers[r] = known
		}
		return known.found, known.err
	}
}

// activeDocument reads the ConfigMap that the node says it runs, nil unless it is that very version.
func activeDocument(ctx context.Context, read configMapReader, v nodeView) map[string]any {
	active := referenceTo(v.config.Active)
	if active.local() {
		return nil
	}
	found, err := read(ctx, active)
	if err != nil || !isVersion(found, v.config.Active) {
		return nil
	}
	d, err := readDocument(payloadOf(found), active.key)
	if err != nil {
		return nil
	}
	return d.tree
}

func isVersion(found *corev1.ConfigMap, source *corev1.NodeConfigSource) bool {
	return found.UID == source.ConfigMap.UID && found.ResourceVersion == source.ConfigMap.ResourceVersion
}

// withDefaults fills in what a configuration does not name.
func withDefaults(tree, defaults map[string]any) map[string]any {
	filled := map[string]any{}
	for _, name := range slices.Concat(sortedKeys(defaults), sortedKeys(tree)) {
		value, named := tree[name]
		inner, isTree := value.(map[string]any)
		base, baseIsTree := defaults[name].(map[string]any)
		switch {
		case !named:
			filled[name] = defaults[name]
		case isTree && baseIsTree && !freeMaps[name]:
			filled[name] = withDefaults(inner, base)
		default:
			filled[name] = value
		}
	}
	return filled
}
