package document

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// An ownField is a field whose value belongs to one node: two nodes with the same value would be misconfigured or
// lost.
type ownField struct {
	path string
	own  func(value string) bool // nil matches any value
	why  string
}

var ownFields = []ownField{
	{"providerID", nil, "it names one machine to the cloud, and no Node can change it"},
	{"podCIDR", nil, "it is one node's share of the pods' network"},
	{"address", isHostAddress, "it is an address of one node"},
	{"healthzBindAddress", isHostAddress, "it is an address of one node"},
}

// isHostAddress reports whether an address belongs to one machine: it is neither the unspecified address nor a
// loopback address.
func isHostAddress(value string) bool {
	address, err := netip.ParseAddr(value)
	return err == nil && !address.IsUnspecified() && !address.IsLoopback()
}

// ownValues returns the fields of a configuration that belong to one node.
func ownValues(tree map[string]any) []ownField {
	return slices.DeleteFunc(slices.Clone(ownFields), func(f ownField) bool {
		value, _ := tree[f.path].(string) // all of them are top-level fields
		return value == "" || f.own != nil && !f.own(value)
	})
}

// Shareable returns an error if a configuration is for one node only.
func (d Document) Shareable() error {
	for _, layer := range d.Over.List() {
		for _, f := range ownValues(layer.Patch) {
			return fmt.Errorf("layer %s: %s: %s belongs to one node, for %s; leave it out, for each node has it in its own file", layer.Name, f.path, Show(f.path, layer.Patch[f.path]), f.why)
		}
	}
	for _, f := range ownValues(d.Tree) {
		return fmt.Errorf("%s: %s belongs to one node, for %s; leave it out, and set it by a flag or a drop-in file of that node", f.path, Show(f.path, d.Tree[f.path]), f.why)
	}
	return nil
}

// RemoveNodeSpecific removes from a tree what belongs to the node that it was read from, and what may be a secret.
// It returns the removed fields.
func RemoveNodeSpecific(tree map[string]any) (left []string) {
	for _, f := range ownValues(tree) {
		left = append(left, f.path)
		delete(tree, f.path)
	}
	for _, field := range kubeletconfig.Fields() {
		if _, is := tree[field.Path]; is && field.Secret { // all of them are top-level fields
			left = append(left, field.Path)
			delete(tree, field.Path)
		}
	}
	return left
}

// Unmasked returns an error for a mask that was copied from printed output, because a node would use it as the
// value.
func (d Document) Unmasked() error {
	const words = "%s is masked (%s), so it is not the value; write that, or leave the field out"
	for _, layer := range d.Over.List() {
		for _, path := range kubeletconfig.MaskedFields(layer.Patch) {
			return fmt.Errorf("layer %s: "+words, layer.Name, path, kubeletconfig.Mask)
		}
	}
	for _, path := range kubeletconfig.MaskedFields(d.Tree) {
		return fmt.Errorf(words, path, kubeletconfig.Mask)
	}
	return nil
}

// rootFields are the fields by which a configuration can give a user root on the node: who may ask the kubelet for
// what, and the sources of pods, runtimes and programs that run as root.
var rootFields = []string{
	"allowedUnsafeSysctls", "authentication", "authorization", "containerRuntimeEndpoint", "enableDebugFlagsHandler", "enableSystemLogHandler",
	"enableSystemLogQuery", "imageServiceEndpoint", "readOnlyPort", "staticPodPath", "staticPodURL", "staticPodURLHeader", "volumePluginDir",
}

// GivesRoot reports whether a field is one of rootFields, or within one.
func GivesRoot(path string) bool {
	top, _, _ := strings.Cut(path, ".")
	return slices.Contains(rootFields, top)
}
