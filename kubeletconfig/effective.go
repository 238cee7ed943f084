package kubeletconfig

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
)

// Effective is the configuration that a kubelet runs with: its file, the drop-in files over it and its flags over those, merged, in the
// field names of v1beta1. It may hold secrets. So it is kept in memory alone; what may be written of it is its [Effective.Digest].
type Effective struct {
	// Told: the kubelet itself merged it, and so its defaults are in it. Else it is our own reading of file, drop-in files and flags.
	Told bool

	// read gives it as JSON, and our own reading of the fields that the kubelet does not tell as they are; nil = unknown. It is a function,
	// for nothing prints what is behind one.
	read func() (document, untold string)
}

// Known reports whether there is one. A node whose files cannot be read has none.
func (e Effective) Known() bool { return e.read != nil }

// Size is the length of its JSON, in bytes.
func (e Effective) Size() int { return len(e.JSON()) }

// JSON is the configuration as a JSON object with sorted keys; nil when it is not known.
func (e Effective) JSON() []byte {
	if !e.Known() {
		return nil
	}
	document, _ := e.read()
	return []byte(document)
}

// Tree is the configuration as a tree of its own, whose numbers are json.Number; nil when it is not known.
func (e Effective) Tree() map[string]any {
	tree, err := Decode(e.JSON())
	if err != nil {
		return nil
	}
	return tree
}

// String keeps the content out of logs.
func (e Effective) String() string {
	switch {
	case !e.Known():
		return "an unknown effective configuration"
	case e.Told:
		return "an effective configuration, told by the kubelet"
	}
	return "an effective configuration, by our own reading"
}

// GoString is [Effective.String].
func (e Effective) GoString() string { return e.String() }

// ReadEffective merges by our own reading what a kubelet with this command line and this file ("" for none) runs with. What only the
// kubelet knows, its defaults among it, is absent. When a file cannot be read or decoded, nothing is known: the kubelet refuses it.
func ReadEffective(argv []string, configFile string) Effective {
	tree, whole := mergedTree(commandline.Parse(argv), configFile)
	if !whole {
		return Effective{}
	}
	commandline.Apply(tree, argv)
	return newEffective(tree, nil)
}

// newEffective is what the kubelet prints, even if it leaves fields out.
func newEffective(tree, untold map[string]any) Effective {
	document, err := json.Marshal(tree)
	hidden, hiddenErr := json.Marshal(untold)
	if err != nil || hiddenErr != nil || len(document) > maxEffective {
		return Effective{}
	}
	return Effective{Told: untold != nil, read: func() (string, string) { return string(document), string(hidden) }}
}

// HandedEffective is an [Effective] on its way to the program that takes the place of this one. It may hold secrets,
// and belongs nowhere else.
type HandedEffective struct {
	Told             bool
	Document, Untold string
}

// HandOver is nil when there is nothing to hand over.
func (e Effective) HandOver() *HandedEffective {
	if !e.Known() {
		return nil
	}
	document, untold := e.read()
	return &HandedEffective{Told: e.Told, Document: document, Untold: untold}
}

// Effective is the configuration that was handed over; unknown when there was none.
func (h *HandedEffective) Effective() Effective {
	if h == nil {
		return Effective{}
	}
	document, untold := h.Document, h.Untold
	return Effective{Told: h.Told, read: func() (string, string) { return document, untold }}
}

// maxEffective bounds a merged configuration, in bytes. Beyond it nothing is known, rather than a part.
const maxEffective = 4 << 20

// ToldEffective completes what a kubelet told in a pre-flight, in the field names of v1beta1. Three things it does not
// tell as they are: logging.verbosity is the pre-flight's own, so ours is read instead; staticPodURLHeader is masked;
// and without files for TLS their fields name a pair that the pre-flight made in certFolder, so they count as unset.
// configFile is the file that the kubelet read, "" for none. The tree becomes the result's.
func ToldEffective(tree map[string]any, argv []string, configFile, certFolder string) Effective {
	for _, field := range []string{"tlsCertFile", "tlsPrivateKeyFile"} {
		if path, ok := tree[field].(string); ok && strings.HasPrefix(path, certFolder+string(filepath.Separator)) {
			delete(tree, field)
		}
	}
	own := ReadEffective(argv, configFile).Tree()
	if own == nil {
		return Effective{}
	}
	logging, _ := own["logging"].(map[string]any)
	untold := map[string]any{"verbosity": logging["verbosity"], "header": own["staticPodURLHeader"]}
	if told, ok := tree["logging"].(map[string]any); ok {
		delete(told, "verbosity")
		if verbosity, said := logging["verbosity"]; said {
			told["verbosity"] = verbosity
		}
	}
	return newEffective(tree, untold)
}

// OtherPodHeaders reports whether two kubelets ask the URL of static pods with different headers, by our own reading.
func (e Effective) OtherPodHeaders(other Effective) bool {
	if !e.Told || !other.Told {
		return false
	}
	header := func(e Effective) any {
		_, text := e.read()
		var untold map[string]any
		_ = json.Unmarshal([]byte(text), &untold) // it is ours
		return untold["header"]
	}
	return !reflect.DeepEqual(header(e), header(other))
}

// Digest is what may be kept of a configuration that the kubelet told: equal digests are equal configurations, wherever their files lie.
// folder is the payload's place on disk, for its relative paths became absolute ([Render]), and others is the payload without the key of
// the configuration, for its files can be named in it. It is empty when the kubelet did not tell.
func (e Effective) Digest(folder string, others map[string]string) string {
	if !e.Told || !e.Known() {
		return ""
	}
	tree := e.Tree()
	if folder != "" {
		for _, field := range pathFields {
			movePath(tree, field, folder)
		}
	}
	_, untold := e.read()
	document, err := json.Marshal(map[string]any{"effective": tree, "untold": untold, "beside": others}) //nolint:misspell // digests on disk have this key
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(document)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// movePath makes a path below folder relative again.
func movePath(tree map[string]any, field []string, folder string) {
	parent, name := parentOf(tree, field)
	path, ok := parent[name].(string)
	if below, inside := strings.CutPrefix(path, folder+string(filepath.Separator)); ok && inside {
		parent[name] = map[string]any{"beside": below} //nolint:misspell // unlike any path that a user can write; digests on disk have this key
	}
}

// parentOf gives the mapping that a nested field is in, nil if there is none, and its last name.
func parentOf(tree map[string]any, field []string) (parent map[string]any, name string) {
	last := len(field) - 1
	for _, step := range field[:last] {
		tree, _ = tree[step].(map[string]any)
	}
	return tree, field[last]
}

// mergedTree is the file with the drop-in files over it. It is whole if all of them could be read.
func mergedTree(arguments commandline.Arguments, configFile string) (merged map[string]any, whole bool) {
	tree := readTree(configFile)
	whole = tree != nil || configFile == ""
	merged = map[string]any{}
	MergePatch(merged, tree)
	eachDropIn(arguments.ConfigDir, func(file dropIn) {
		if tree, err := Decode(file.bytes); file.err == nil && err == nil {
			MergePatch(merged, tree)
		} else {
			whole = false
		}
	})
	return merged, whole
}

// MergePatch follows RFC 7386, as the kubelet does with drop-in files: mappings are merged, null deletes what was said before, and
// everything else replaces it. The patch stays as it is, and its lists become the tree's.
func MergePatch(into, patch map[string]any) {
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(into, name)
		case map[string]any:
			below, ok := into[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				into[name] = below
			}
			MergePatch(below, value)
		default:
			into[name] = value
		}
	}
}
