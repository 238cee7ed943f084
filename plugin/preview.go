package plugin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// preview tells what assigning would change, once for nodes where it is the same.
func (s *session) preview(ctx context.Context, client kubernetes.Interface, views []nodeView, wanted reference, written document) {
	var texts []string
	nodes := map[string][]string{}
	for _, v := range views {
		text := s.previewNode(ctx, client, v, written)
		if nodes[text] == nil {
			texts = append(texts, text)
		}
		nodes[text] = append(nodes[text], v.Name)
	}
	for _, text := range texts {
		s.note("%s, with %s:\n%s", strings.Join(nodes[text], ", "), wanted, strings.TrimRight(text, "\n"))
	}
}

func (s *session) previewNode(ctx context.Context, client kubernetes.Interface, v nodeView, written document) string {
	var text bytes.Buffer
	if !v.supervised {
		_, _ = fmt.Fprintln(&text, "  No supervisor has met this node yet: nothing happens until one does.")
	}
	compared, err := s.compare(ctx, client, v, written)
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
		return "a version of " + printable(active.String()) + " that cannot be read"
	}
	return "its own configuration"
}

// compare gathers what is known about a node for a comparison: of its kubelet if it can be asked, else of the configuration that it
// says it runs.
func (s *session) compare(ctx context.Context, client kubernetes.Interface, v nodeView, written document) (comparison, error) {
	defaults, version, exact, err := defaultsOf(v.Status.NodeInfo.KubeletVersion)
	if err != nil {
		return comparison{}, err
	}
	c := comparison{wanted: written.tree, defaults: defaults, active: activeDocument(ctx, client, v)}
	var caveats []string
	if !exact {
		caveats = append(caveats, fmt.Sprintf("Defaults are those of Kubernetes %s; the node runs %s.", version, printable(v.Status.NodeInfo.KubeletVersion)))
	}
	c.running, err = s.configz(ctx, client, v.Name)
	if err != nil {
		if c.active == nil {
			return comparison{}, err
		}
		caveats = append(caveats, "Compared with the active ConfigMap, without flags and drop-in files of the node, for its kubelet cannot be asked: "+printable(err.Error()))
		c.running = withDefaults(c.active, defaults)
	}
	c.caveat = strings.Join(caveats, " ")
	return c, nil
}

// activeDocument reads the ConfigMap that the node says it runs, nil unless it is that very version.
func activeDocument(ctx context.Context, client kubernetes.Interface, v nodeView) map[string]any {
	active := referenceTo(v.config.Active)
	if active.local() {
		return nil
	}
	found, _, err := getConfigMap(ctx, client, active)
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
