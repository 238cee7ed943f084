package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// hashLength is the number of characters of the hash in a name.
const hashLength = 10

// Revision is base and layers, independent of the members. It is stored whole, so that the stable revision, a pin
// and an undo need nothing else.
type Revision struct {
	Pool   string          `json:"pool"`
	Number int64           `json:"number"`
	Hash   string          `json:"hash"`
	Base   v1alpha1.Base   `json:"base"`
	Layers []RevisionLayer `json:"layers"`
	Cause  string          `json:"cause,omitempty"`
	// Tampered means that the stored content does not match the name.
	Tampered bool `json:"-"`
}

// RevisionLayer is a layer of a revision. Name, From and ResourceVersion are for people, and not part of the
// content.
type RevisionLayer struct {
	Name            string          `json:"name"`
	From            string          `json:"from"`
	ResourceVersion string          `json:"resourceVersion,omitempty"`
	Patch           json.RawMessage `json:"patch"`
	NodeSelector    string          `json:"nodeSelector,omitempty"`

	selector nodeSelector
}

// ObjectName returns the name of the ControllerRevision.
func (r *Revision) ObjectName() string { return r.Pool + "-" + r.Hash }

// Data returns the data of the ControllerRevision.
func (r *Revision) Data() ([]byte, error) {
	text, err := canonical(r)
	return []byte(text), err
}

// ReadRevision decodes the data of a ControllerRevision, and compares it with its name.
func ReadRevision(pool, name string, data []byte) Revision {
	r := Revision{}
	if err := json.Unmarshal(data, &r); err != nil || r.Pool != pool || r.ObjectName() != name || r.Number < 1 {
		return Revision{Pool: pool, Hash: name[min(len(name), len(pool)+1):], Tampered: true}
	}
	for i := range r.Layers {
		selector, err := parseSelector(r.Layers[i].NodeSelector)
		if err != nil {
			r.Tampered = true
		}
		r.Layers[i].selector = selector
	}
	r.Tampered = r.Tampered || revisionHash(r.Base, r.Layers) != r.Hash
	return r
}

// revisionHash returns the hash of the content: base, and each layer's patch with its selector, in order.
func revisionHash(base v1alpha1.Base, layers []RevisionLayer) string {
	text := make([]byte, 0, 512)
	text = append(text, `{"base":`...)
	text = strconv.AppendQuote(text, string(base))
	for i := range layers {
		text = append(append(text, `,{"patch":`...), layers[i].Patch...)
		if layers[i].NodeSelector != "" {
			text = strconv.AppendQuote(append(text, `,"nodeSelector":`...), layers[i].NodeSelector)
		}
		text = append(text, '}')
	}
	return shortHash(append(text, '}'))
}

func shortHash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:hashLength]
}

// Variant is what a node with a given set of layers gets from a revision: an immutable ConfigMap.
type Variant struct {
	Pool string
	// Name is the name of the ConfigMap, Key its only key.
	Name, Key string
	Payload   string
}

// variantPrefix is the prefix of the names of variants.
const variantPrefix = "pool-"

// VariantKey is the key of a variant's ConfigMap.
const VariantKey = "kubelet"

// Tampered reports whether a ConfigMap's content, without the parts for people, does not match the hash in its
// name.
func Tampered(pool, name string, data map[string]string) bool {
	var e envelope
	if len(data) != 1 || json.Unmarshal([]byte(data[VariantKey]), &e) != nil || e.Kind != envelopeKind || e.APIVersion != envelopeVersion {
		return true
	}
	patches := make([]json.RawMessage, len(e.Layers))
	for i := range e.Layers {
		patches[i] = e.Layers[i].Patch
	}
	return variantName(pool, e.Base, patches) != name
}

func variantName(pool string, base v1alpha1.Base, patches []json.RawMessage) string {
	text := append(make([]byte, 0, 512), base...)
	for _, patch := range patches {
		text = append(append(text, '\n'), patch...)
	}
	return variantPrefix + pool + "-" + shortHash(text)
}

// The envelope that a supervisor merges over its own local file.
const (
	envelopeKind    = "KubeletConfigurationLayers"
	envelopeVersion = "kubelet-supervisor.io/v1alpha1"
)

type envelope struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Base       v1alpha1.Base   `json:"base"`
	Layers     []envelopeLayer `json:"layers"`
}

type envelopeLayer struct {
	Name  string          `json:"name"`
	From  string          `json:"from"`
	Patch json.RawMessage `json:"patch"`
}

var errTooLarge = errors.New("what a node with all layers would get is larger than 1 MiB")

// checkSize refuses a revision that is too large: a node may match all layers, so all of them together must fit
// into one ConfigMap.
func (r *Revision) checkSize() error {
	size := 1024
	for i := range r.Layers {
		size += len(r.Layers[i].Patch) + len(r.Layers[i].From) + 256
	}
	if size > payloadLimit {
		return fmt.Errorf("spec.layers: %w", errTooLarge)
	}
	return nil
}
