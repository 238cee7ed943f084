//go:build linux

package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

// Whether pods can be started is seen by those that come during a trial: a kubelet says of each whether it has a sandbox, by the condition
// PodReadyToStartContainers (since Kubernetes 1.29). A node may not list events, which have the reason, and a sandbox that was never made
// is nothing that the container runtime could list. Pods that may wait for something else before their sandbox is tried say nothing.
const podPatience = time.Minute // for a pod without a sandbox

// A podStart is what a pod says of its sandbox.
type podStart struct {
	uid     types.UID
	name    string
	started bool // it has, or has had, one
	waits   bool // it has none, and waits for nothing else
}

// podDocument is the part of a Pod that is read.
type podDocument struct {
	Metadata struct {
		Namespace         string    `json:"namespace"`
		Name              string    `json:"name"`
		UID               types.UID `json:"uid"`
		DeletionTimestamp *string   `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Volumes          []volumeDocument  `json:"volumes"`
		HostUsers        *bool             `json:"hostUsers"`
		RuntimeClassName string            `json:"runtimeClassName"`
		ResourceClaims   []json.RawMessage `json:"resourceClaims"`
	} `json:"spec"`
	Status struct {
		Phase      corev1.PodPhase `json:"phase"`
		Conditions []struct {
			Type   corev1.PodConditionType `json:"type"`
			Status corev1.ConditionStatus  `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

type volumeDocument struct {
	EmptyDir    *json.RawMessage `json:"emptyDir"`
	DownwardAPI *json.RawMessage `json:"downwardAPI"`
	HostPath    *struct {
		Type string `json:"type"`
	} `json:"hostPath"`
	Projected *struct {
		Sources []struct {
			ServiceAccountToken *json.RawMessage `json:"serviceAccountToken"`
			DownwardAPI         *json.RawMessage `json:"downwardAPI"`
			ConfigMap           *struct {
				Name string `json:"name"`
			} `json:"configMap"`
		} `json:"sources"`
	} `json:"projected"`
}

// rootCA is the ConfigMap that every namespace has.
const rootCA = "kube-root-ca.crt"

// mayWait reports whether a volume can be what a pod waits for: one that another program has to make or to attach.
func (v volumeDocument) mayWait() bool {
	switch {
	case v.EmptyDir != nil, v.DownwardAPI != nil:
		return false
	case v.HostPath != nil:
		return v.HostPath.Type != ""
	case v.Projected == nil:
		return true
	}
	for _, s := range v.Projected.Sources {
		if s.ServiceAccountToken == nil && s.DownwardAPI == nil && (s.ConfigMap == nil || s.ConfigMap.Name != rootCA) {
			return true
		}
	}
	return false
}

func (p *podDocument) start() podStart {
	start := podStart{uid: p.Metadata.UID, name: p.Metadata.Namespace + "/" + p.Metadata.Name,
		started: p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodSucceeded}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReadyToStartContainers {
			start.started = start.started || c.Status == corev1.ConditionTrue
			start.waits = c.Status == corev1.ConditionFalse
		}
	}
	start.waits = start.waits && !start.started && p.Status.Phase == corev1.PodPending && p.Metadata.DeletionTimestamp == nil &&
		p.Spec.RuntimeClassName == "" && len(p.Spec.ResourceClaims) == 0 && (p.Spec.HostUsers == nil || *p.Spec.HostUsers) &&
		!slices.ContainsFunc(p.Spec.Volumes, volumeDocument.mayWait)
	return start
}

// readPodStarts reads a PodList.
func readPodStarts(text io.Reader) (pods []podStart, err error) {
	err = forecast.EachItem(text, func(decoder *json.Decoder) error {
		var p podDocument
		if err := decoder.Decode(&p); err != nil {
			return err
		}
		pods = append(pods, p.start())
		return nil
	})
	return pods, err
}

func listPodStarts(ctx context.Context, client rest.Interface, nodeName string) ([]podStart, error) {
	ctx, cancel := context.WithTimeout(ctx, configsync.RequestTimeout)
	defer cancel()
	list, err := configsync.OpenPods(ctx, client, nodeName, configsync.AsCached)
	if err != nil {
		return nil, err
	}
	defer list.Close()
	return readPodStarts(list)
}

// podStarts is what the looks at the pods have seen since a configuration was started.
type podStarts struct {
	Of      string                      // its content
	Known   bool                        // the pods of before are
	Before  map[types.UID]bool          // those, and whether they had no sandbox
	Since   map[types.UID]time.Duration // pods that came later and have no sandbox: when a look has first seen that
	Started bool                        // one that came later has one
}

// look takes the pods as they are now. Where pods of before have none either, nothing can be said of the configuration.
func (s *podStarts) look(pods []podStart, now time.Duration) core.PodStarts {
	if !s.Known {
		s.Known, s.Before = true, map[types.UID]bool{}
		for _, p := range pods {
			s.Before[p.uid] = p.waits
		}
		return core.PodStarts{Known: true}
	}
	since := map[types.UID]time.Duration{}
	var waiting []string
	failing := false
	for _, p := range pods {
		waited, old := s.Before[p.uid]
		switch {
		case p.started && (!old || waited):
			s.Started = true
		case old && waited && p.waits:
			return core.PodStarts{Known: true}
		case !old && p.waits:
			first, seen := s.Since[p.uid]
			if !seen {
				first = now
			}
			since[p.uid] = first
			failing = failing || now-first >= podPatience
			waiting = append(waiting, p.name)
		}
	}
	if s.Since = since; s.Started {
		return core.PodStarts{Known: true, Started: true}
	}
	return core.PodStarts{Known: true, Waiting: namesOf(waiting), Failing: failing}
}

// namesOf lists some of the names.
func namesOf(names []string) string {
	slices.Sort(names)
	shown := strings.Join(names[:min(namedPods, len(names))], ", ")
	if len(names) > namedPods {
		shown = fmt.Sprintf("%s and %d more", shown, len(names)-namedPods)
	}
	return shown
}
