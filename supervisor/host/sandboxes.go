//go:build linux

package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

const (
	listPodSandbox = "/runtime.v1.RuntimeService/ListPodSandbox"

	sandboxPatience = 5 * time.Second
	mostSandboxText = 16 << 20 // bytes: the kubelet itself takes no longer answer
	mostSandboxes   = 2000
)

// What a kubelet writes on the sandboxes that it makes.
const (
	nameLabel      = "io.kubernetes.pod.name"
	namespaceLabel = "io.kubernetes.pod.namespace"
	uidLabel       = "io.kubernetes.pod.uid"
)

// ErrNoCRI says that this container runtime cannot tell its pods, and never will. Any other error is a runtime that has not answered.
var ErrNoCRI = errors.New("the container runtime does not know version 1 of the CRI")

// readySandboxes is a ListPodSandboxRequest with a filter (1), which has a state (2): ready, whose value is 0, so it is not sent.
var readySandboxes = []byte{1<<3 | 2, 2, 2<<3 | 2, 0}

// Sandboxes are those that are ready, of pods of a kubelet. It never returns nil without an error.
func Sandboxes(ctx context.Context, endpoint string) ([]forecast.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, sandboxPatience)
	defer cancel()
	runtime := newRuntime(endpoint)
	defer runtime.close()
	return runtime.sandboxes(ctx)
}

func (r *runtime) sandboxes(ctx context.Context) ([]forecast.Sandbox, error) {
	answer, err := r.ask(ctx, listPodSandbox, readySandboxes, mostSandboxText)
	if knowsNot(err) {
		return nil, ErrNoCRI
	}
	if err != nil {
		return nil, err
	}
	list, err := decodeSandboxes(answer)
	if err != nil {
		return nil, fmt.Errorf("reading the container runtime's list of sandboxes: %w", err)
	}
	return list, nil
}

// decodeSandboxes reads a ListPodSandboxResponse. A list that is cut or broken is no shorter list.
func decodeSandboxes(answer []byte) ([]forecast.Sandbox, error) {
	list := []forecast.Sandbox{}
	for len(answer) > 0 {
		number, item, rest, err := nextField(answer)
		if err != nil {
			return nil, err
		}
		answer = rest
		if number != 1 {
			continue
		}
		sandbox, ofKubelet, err := decodeSandbox(item)
		if err != nil {
			return nil, err
		}
		if !ofKubelet {
			continue
		}
		if len(list) == mostSandboxes {
			return nil, fmt.Errorf("there are more than %d", mostSandboxes)
		}
		list = append(list, sandbox)
	}
	return list, nil
}

// decodeSandbox reads a PodSandbox: its id (1), state (3), labels (5) and annotations (6). One that is not ready, or
// not a kubelet's, is left out.
func decodeSandbox(item []byte) (s forecast.Sandbox, ofKubelet bool, err error) {
	labels, annotations := map[string]string{}, map[string]string{}
	ready := true
	for len(item) > 0 {
		number, value, rest, err := nextField(item)
		if err != nil {
			return s, false, err
		}
		item = rest
		switch number {
		case 1:
			s.ID = string(value)
		case 3:
			state, _ := binary.Uvarint(value)
			ready = state == 0
		case 5:
			err = addEntry(labels, value)
		case 6:
			err = addEntry(annotations, value)
		}
		if err != nil {
			return s, false, err
		}
	}
	s.Namespace, s.Name, s.UID = labels[namespaceLabel], labels[nameLabel], labels[uidLabel]
	s.Source = annotations[forecast.SourceAnnotation]
	if s.Static() {
		s.Labels, s.Annotations = labels, annotations
	}
	return s, ready && s.UID != "", nil
}

// addEntry reads an entry of a map: a key (1) and a value (2).
func addEntry(to map[string]string, entry []byte) error {
	var key, value string
	for len(entry) > 0 {
		number, text, rest, err := nextField(entry)
		if err != nil {
			return err
		}
		entry = rest
		switch number {
		case 1:
			key = string(text)
		case 2:
			value = string(text)
		}
	}
	to[key] = value
	return nil
}
