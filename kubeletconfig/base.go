package kubeletconfig

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

import (
	"fmt"
	"path/filepath"
)

// Base is the node's own configuration as layers are laid over it: the file behind --config as it is on disk, or what a kubelet without one
// runs with.
type Base struct {
	Digest   string // as [LocalContent] has it
	Document []byte
	Folder   string // of --config as it is written, links not resolved: what relative paths in it are against
}

// legacyDefaults are what a kubelet without --config runs with where one with a file has other defaults (applyLegacyDefaults in
// cmd/kubelet/app/options of Kubernetes 1.36). Without them a layer of one field would change a node's authentication unsaid.
const legacyDefaults = `{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","authentication":{"anonymous":{"enabled":true},` +
	`"webhook":{"enabled":false}},"authorization":{"mode":"AlwaysAllow"},"readOnlyPort":10255}`

// ReadBase reads what layers are laid over on a node whose kubelet has this command line. Its error is a *[BaseError].
func ReadBase(argv []string) (Base, error) {
	path := commandline.Parse(argv).Config
	if path == "" {
		return Base{Digest: noFile, Document: []byte(legacyDefaults)}, nil
	}
	document, err := ReadFile(path)
	if err != nil {
		return Base{}, &BaseError{Words: "the node's own configuration file cannot be read: " + err.Error()}
	}
	return BaseOf(argv, document), nil
}

// BaseOf is what was read before: the file's content, or that of no file.
func BaseOf(argv []string, document []byte) Base {
	path := commandline.Parse(argv).Config
	if path == "" {
		return Base{Digest: digestOfFile(document), Document: document}
	}
	return Base{Digest: digestOfFile(document), Document: document, Folder: filepath.Dir(path)}
}

// BaseError says why layers cannot be laid over the node's own configuration: it is missing, unreadable or no
// KubeletConfiguration. That is a fault of the node, not of the layers.
type BaseError struct{ Words string }

func (e *BaseError) Error() string { return e.Words }

// tree decodes the base, its relative paths made absolute: in what is laid over it they would be against another folder.
func (b Base) tree() (map[string]any, error) {
	refuse := func(format string, words ...any) (map[string]any, error) {
		return nil, &BaseError{Words: "the node's own configuration file " + fmt.Sprintf(format, words...)}
	}
	tree, err := Decode(b.Document)
	switch {
	case err != nil:
		return refuse("does not decode as YAML or JSON: %v", err)
	case tree["kind"] != kind || tree["apiVersion"] != apiVersion:
		return refuse("is no %s of %s", kind, apiVersion)
	}
	if b.Folder != "" {
		resolvePaths(tree, b.Folder)
	}
	return tree, nil
}
