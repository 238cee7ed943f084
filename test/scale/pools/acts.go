//go:build linux

package pools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// An act is something that people do, or that befalls programs.
type act struct {
	name   string
	weight int
	do     func(*soaker, context.Context) error
}

// acts are all of them. Most of the time somebody pushes, so that there is something to interfere with.
var acts = []act{
	{"push a good revision", 12, func(s *soaker, ctx context.Context) error { return s.push(ctx, "") }},
	{"push one that the kubelet refuses", 4, func(s *soaker, ctx context.Context) error { return s.push(ctx, refuses) }},
	{"push one that the kubelet dies of", 4, func(s *soaker, ctx context.Context) error { return s.push(ctx, dies) }},
	{"push a layer for some nodes only", 4, func(s *soaker, ctx context.Context) error { return s.pushForSome(ctx) }},
	{"pause or go on", 3, func(s *soaker, ctx context.Context) error {
		return s.spec(ctx, fmt.Sprintf(`{"rollout":{"paused":%t}}`, s.random.IntN(2) == 0))
	}},
	{"try again", 3, func(s *soaker, ctx context.Context) error {
		return s.spec(ctx, fmt.Sprintf(`{"rollout":{"retry":"word-%d"}}`, s.random.IntN(1000)))
	}},
	{"change maxUnavailable", 3, func(s *soaker, ctx context.Context) error {
		return s.spec(ctx, fmt.Sprintf(`{"rollout":{"maxUnavailable":%s}}`, []string{`"10%"`, "1", `"25%"`, "0", "3"}[s.random.IntN(5)]))
	}},
	{"go back", 3, (*soaker).undo},
	{"assign by hand", 4, (*soaker).byHand},
	{"reset by hand", 3, func(s *soaker, ctx context.Context) error {
		return s.annotate(ctx, s.any(), map[string]any{nodev1.ConfigSourceAnnotation: nil})
	}},
	{"give back to the pool", 3, func(s *soaker, ctx context.Context) error { return s.release(ctx, s.any()) }},
	{"hold, or let go", 4, func(s *soaker, ctx context.Context) error {
		return s.label(ctx, s.any(), rollout.RolloutLabel, []any{"hold", nil}[s.random.IntN(2)])
	}},
	{"take out of all pools, or back", 4, func(s *soaker, ctx context.Context) error {
		return s.label(ctx, s.any(), rollout.PoolLabel, []any{"none", nil}[s.random.IntN(2)])
	}},
	{"change a label that a layer goes by", 4, func(s *soaker, ctx context.Context) error {
		return s.label(ctx, s.any(), gpuLabel, []any{"true", nil}[s.random.IntN(2)])
	}},
	{"cordon or uncordon", 4, func(s *soaker, ctx context.Context) error { return s.cordon(ctx, s.any(), s.random.IntN(2) == 0) }},
	{"lose a node for a while", 4, (*soaker).lose},
	{"delete a Node, and make it again", 3, (*soaker).replace},
	{"kill a controller", 4, func(s *soaker, _ context.Context) error { s.killController(s.anyController()); return nil }},
	{"freeze a controller", 3, func(s *soaker, ctx context.Context) error { s.freeze(ctx, s.anyController()); return nil }},
	{"kill a supervisor", 4, func(s *soaker, _ context.Context) error { return s.killSupervisor() }},
	{"kill the real kubelet", 4, func(s *soaker, _ context.Context) error { s.real.killKubelet(); return nil }},
	{"kill the API server", 2, (*soaker).killAPIServer},
}

// act does one of them. What the API server does not carry out, for it was just killed, is counted as that.
func (s *soaker) act(ctx context.Context) error {
	all := 0
	for i := range acts {
		all += acts[i].weight
	}
	at := s.random.IntN(all)
	for i := range acts {
		if at -= acts[i].weight; at >= 0 {
			continue
		}
		s.soaked.Acts[acts[i].name]++
		if err := acts[i].do(s, ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.soaked.InVain++
			_, _ = fmt.Fprintf(s.Log, "%s %s: in vain: %v\n", time.Since(s.began).Round(time.Second), acts[i].name, err)
		}
		return nil
	}
	return nil
}

// any is the name of a node.
func (s *soaker) any() string { return s.names[s.random.IntN(len(s.names))] }

// layers are those of another revision. The fake kubelets do what it says, and so do the puppets; the real one gets what makes it do the same.
func (s *soaker) layers(mode string) string {
	s.pods++
	return fmt.Sprintf(`{"name":"density","inline":{"maxPods":%d}}`, s.pods) + s.natures("nature", mode, "")
}

// natures are two layers more: what the fake kubelets do, and what makes the real one do so. Both are for nodes with these labels alone.
func (s *soaker) natures(name, mode, labels string) (list string) {
	if mode != "" {
		list = fmt.Sprintf(`,{"name":"%s-fake","nodeSelector":{"matchLabels":{%s},"matchExpressions":[{"key":%q,"operator":"DoesNotExist"}]},`+
			`"inline":{"fake":{"mode":%q,"words":"so says the soak"}}}`, name, labels, realLabel, mode)
	}
	patches := realPatches[mode]
	return list + fmt.Sprintf(`,{"name":"%s-real","nodeSelector":{"matchLabels":{%s},"matchExpressions":[{"key":%q,"operator":"Exists"}]},"inline":%s}`,
		name, labels, realLabel, patches[s.random.IntN(len(patches))])
}

func (s *soaker) push(ctx context.Context, mode string) error {
	return s.spec(ctx, `{"layers":[`+s.layers(mode)+`],"rollout":{"pin":null}}`)
}

func (s *soaker) pushForSome(ctx context.Context) error {
	mode := []string{"", "", refuses, dies}[s.random.IntN(4)]
	const gpu = `"` + gpuLabel + `":"true"`
	return s.spec(ctx, `{"layers":[`+s.layers("")+`,{"name":"gpu","nodeSelector":{"matchLabels":{`+gpu+`}},"inline":`+
		fmt.Sprintf(`{"podPidsLimit":%d}}`, s.pods)+s.natures("gpu", mode, gpu)+`],"rollout":{"pin":null}}`)
}

// spec changes the pool's.
func (s *soaker) spec(ctx context.Context, patch string) error {
	return s.admin.Patch(ctx, &v1alpha1.KubeletPool{ObjectMeta: s.pool.ObjectMeta}, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+patch+`}`)))
}

// undo pins the revision that is stable.
func (s *soaker) undo(ctx context.Context) error {
	var p v1alpha1.KubeletPool
	if err := s.admin.Get(ctx, client.ObjectKeyFromObject(s.pool), &p); err != nil {
		return err
	}
	if p.Status.Stable == nil {
		return nil
	}
	if p.Status.Stable.Local {
		return s.spec(ctx, `{"rollout":{"pin":{"local":true,"revision":null}}}`)
	}
	return s.spec(ctx, fmt.Sprintf(`{"rollout":{"pin":{"revision":%d,"local":null}}}`, p.Status.Stable.Revision))
}

const byHand = "by-hand"

// byHand assigns a node what nobody asked the pool for.
func (s *soaker) byHand(ctx context.Context) error {
	hand := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: byHand}, Data: map[string]string{"kubelet": "apiVersion: kubelet-supervisor.io/v1alpha1\n" +
		"kind: KubeletConfigurationLayers\nbase: Local\nlayers:\n- name: hand\n  patch: {maxPods: 77}\n"}}
	if err := client.IgnoreAlreadyExists(s.admin.Create(ctx, hand)); err != nil {
		return err
	}
	return s.annotate(ctx, s.any(), map[string]any{nodev1.ConfigSourceAnnotation: rollout.Namespace + "/" + byHand + "/kubelet"})
}

// release gives a node back to its pool: nothing is assigned, and nobody has said anything.
func (s *soaker) release(ctx context.Context, name string) error {
	return s.annotate(ctx, name, map[string]any{nodev1.ConfigSourceAnnotation: nil, rollout.MarkAnnotation: nil, nodev1.RetryAnnotation: nil})
}

func (s *soaker) annotate(ctx context.Context, name string, annotations map[string]any) error {
	return s.patchNode(ctx, name, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

func (s *soaker) label(ctx context.Context, name, key string, value any) error {
	return s.patchNode(ctx, name, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}})
}

func (s *soaker) cordon(ctx context.Context, name string, is bool) error {
	return s.patchNode(ctx, name, map[string]any{"spec": map[string]any{"unschedulable": is}})
}

func (s *soaker) patchNode(ctx context.Context, name string, change map[string]any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return s.admin.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch(types.MergePatchType, body))
}

// lose lets a node be NotReady for some seconds, whatever it runs.
func (s *soaker) lose(ctx context.Context) error {
	name, lasts := s.any(), time.Duration(5+s.random.IntN(25))*time.Second
	if err := s.ready(ctx, name, false); err != nil {
		return err
	}
	s.beside.Go(func() {
		pause(ctx, lasts)
		_ = s.ready(ctx, name, true) // calm sees to it where it was in vain
	})
	return nil
}

func (s *soaker) ready(ctx context.Context, name string, is bool) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	body := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, map[bool]string{true: "True", false: "Unknown"}[is])
	return s.admin.Status().Patch(as(ctx, n), n, client.RawPatch(types.StrategicMergePatchType, body))
}

// replace deletes a puppet's Node, and makes one of the same name, as a cloud does.
func (s *soaker) replace(ctx context.Context) error {
	i := s.random.IntN(len(s.crew.puppets))
	n := node(i)
	if err := s.admin.Delete(ctx, n); err != nil {
		return err
	}
	return s.make(ctx, i)
}

// make makes the Node of a puppet, which has not said anything yet.
func (s *soaker) make(ctx context.Context, i int) error { return s.admin.Create(ctx, node(i)) }
