// Package history holds a rollout against the rules of KubeletPools, by nothing but what the API server has noted.
//
// Read takes the writes of Nodes and KubeletPools out of an audit log that has the objects in it. Check goes through them in the order of their
// resourceVersions. Of a Node it knows exactly what the controller had read when it wrote: its PATCH names that resourceVersion. Of everything
// else the controller may have known a little less than the API server, so there a rule is only broken where nothing that was true within Lag
// allows the write.
package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// A Write is one that the API server has carried out.
type Write struct {
	Received, Answered time.Time
	User, Name         string
	Version            uint64        // the resourceVersion after it; 0: the object was deleted
	Node               *rollout.Node // after it; nil: it is about a pool
	Pool               *v1alpha1.KubeletPool
	// What the request asked to be true of the object: its UID and resourceVersion. Empty: nothing.
	UID, Since string
}

// Read reads an audit log. A last line that was not written to its end is left out, for an API server may have been killed over it.
func Read(log io.Reader) (writes []Write, err error) {
	for lines := bufio.NewReaderSize(log, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			slices.SortStableFunc(writes, func(a, b Write) int { return a.Received.Compare(b.Received) })
			return writes, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if w, is := take(line); is {
			writes = append(writes, w)
		}
	}
}

// take reads one event. What is no write of a Node or KubeletPool, or was refused, or is the torn line of a killed API server, is none.
func take(line []byte) (w Write, is bool) {
	if !bytes.Contains(line, []byte(`"nodes"`)) && !bytes.Contains(line, []byte(`"kubeletpools"`)) {
		return w, false
	}
	var e struct {
		Stage, Verb, RequestURI string
		Received                time.Time `json:"requestReceivedTimestamp"`
		Answered                time.Time `json:"stageTimestamp"`
		User, ImpersonatedUser  struct{ Username string }
		Object                  struct{ Resource, Subresource, Name string } `json:"objectRef"`
		Answer                  struct{ Code int }                           `json:"responseStatus"`
		Request                 struct {
			Metadata struct{ UID, ResourceVersion string }
		} `json:"requestObject"`
		After json.RawMessage `json:"responseObject"`
	}
	if json.Unmarshal(line, &e) != nil || e.Stage != "ResponseComplete" || e.Answer.Code/100 != 2 || strings.Contains(e.RequestURI, "dryRun") {
		return w, false
	}
	w = Write{Received: e.Received, Answered: e.Answered, User: e.User.Username, Name: e.Object.Name, UID: e.Request.Metadata.UID, Since: e.Request.Metadata.ResourceVersion}
	if e.ImpersonatedUser.Username != "" {
		w.User = e.ImpersonatedUser.Username
	}
	switch e.Verb {
	case "create", "update", "patch":
	case "delete":
		if w.Node = (&rollout.Node{Name: w.Name}); e.Object.Resource != "nodes" {
			w.Node, w.Pool = nil, &v1alpha1.KubeletPool{}
		}
		return w, true
	default:
		return w, false
	}
	return w, w.read(e.Object.Resource, e.After)
}

func (w *Write) read(resource string, after json.RawMessage) bool {
	version := ""
	switch resource {
	case "nodes":
		var n corev1.Node
		if json.Unmarshal(after, &n) != nil {
			return false
		}
		read := rollout.ReadNode(&n)
		w.Node, w.Name, version = &read, n.Name, n.ResourceVersion
	case "kubeletpools":
		w.Pool = &v1alpha1.KubeletPool{}
		if json.Unmarshal(after, w.Pool) != nil {
			return false
		}
		w.Name, version = w.Pool.Name, w.Pool.ResourceVersion
	default:
		return false
	}
	w.Version, _ = strconv.ParseUint(version, 10, 64)
	return w.Version > 0
}
