//go:build linux

package pools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// look says nothing while something is awaited: the controllers are looked after by themselves.
func (s *soaker) look(ctx context.Context) error { return ctx.Err() }

// calm mends everything that people have done, pushes a good revision, and waits until every node runs it.
func (s *soaker) calm(ctx context.Context) error {
	s.mutex.Lock()
	for i, p := range s.controllers {
		p.Signal(syscall.SIGCONT)
		s.frozen[i] = false
	}
	s.mutex.Unlock()
	patient, cancel := context.WithTimeout(ctx, roundPatience)
	defer cancel()
	var last error
	for {
		if last = s.mend(patient); last == nil {
			break
		}
		if patient.Err() != nil {
			return fmt.Errorf("mending what people have done: %w", last)
		}
		pause(patient, time.Second)
	}
	if err := s.await(patient, v1alpha1.ConditionReady, rollout.ReasonCompleted); err != nil {
		return err
	}
	var behind []string
	var why error
	for {
		names, err := s.unlike(patient, func(n *rollout.Node) bool {
			return n.Reason == nodev1.ReasonActive && n.Observed == n.Source && n.Good == n.Source && n.Mark.Records(n.Source) && n.Mark.Pool == poolName && !n.Cordoned
		})
		if err == nil && len(names) == 0 {
			if err = s.real.runs(patient, s.pods); err == nil {
				return nil
			}
		}
		if patient.Err() != nil { // what came of this look says nothing
			return fmt.Errorf("the pool is completed, and these nodes are not: %q: %w%s%s", behind, errors.Join(why, patient.Err()), s.evidence(ctx, behind), s.real.words())
		}
		behind, why = names, err
		pause(patient, time.Second)
	}
}

// evidence is what the API server has of the pool and of these Nodes, and what the controllers have said last.
func (s *soaker) evidence(ctx context.Context, names []string) string {
	var text strings.Builder
	var p v1alpha1.KubeletPool
	err := s.admin.Get(ctx, client.ObjectKeyFromObject(s.pool), &p)
	fmt.Fprintf(&text, "\nthe pool (%v): %+v %+v", err, p.Spec, p.Status)
	for _, name := range names {
		var n corev1.Node
		err := s.admin.Get(ctx, client.ObjectKey{Name: name}, &n)
		fmt.Fprintf(&text, "\n%s (%v): %+v, made %s, conditions %+v", name, err, rollout.ReadNode(&n), n.CreationTimestamp, n.Status.Conditions)
	}
	for i := range s.controllers {
		name := fmt.Sprintf("controller-%d.log", i)
		log, err := os.ReadFile(filepath.Join(s.folder, name))
		lines := strings.SplitAfter(string(log), "\n")
		fmt.Fprintf(&text, "\nthe last words of %s (%v):\n%s", name, err, strings.Join(lines[max(0, len(lines)-40):], ""))
	}
	return text.String()
}

// mend undoes what people have done, but for what nodes run.
func (s *soaker) mend(ctx context.Context) error {
	puppets := len(s.names) - s.options.Machines
	for i, name := range s.names {
		var n corev1.Node
		switch err := s.admin.Get(ctx, client.ObjectKey{Name: name}, &n); {
		case apierrors.IsNotFound(err) && i < puppets:
			if err := s.make(ctx, i); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		read := rollout.ReadNode(&n)
		if !read.Ready {
			if err := s.ready(ctx, name, true); err != nil {
				return err
			}
		}
		if read.Cordoned || n.Labels[rollout.RolloutLabel] != "" || n.Labels[rollout.PoolLabel] != "" {
			if err := s.patchNode(ctx, name, map[string]any{"spec": map[string]any{"unschedulable": false}, "metadata": map[string]any{"labels": map[string]any{
				rollout.RolloutLabel: nil, rollout.PoolLabel: nil}}}); err != nil {
				return err
			}
		}
		if !read.Mark.Records(read.Source) && (read.Source != "" || read.Mark.Pool != "") {
			if err := s.release(ctx, name); err != nil {
				return err
			}
		}
	}
	return s.spec(ctx, `{"layers":[`+s.layers("")+`],"rollout":{"pin":null,"paused":false,"retry":null,"maxUnavailable":"25%"}}`)
}
