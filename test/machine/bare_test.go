//go:build machine

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/machine/disk"
)

// bareNode is a machine without systemd, whose first process has started nothing but the agent: there, a supervisor with a fake kubelet.
type bareNode struct {
	*machine
	*outside
	*history
}

const (
	bareSize = 64 << 20 // bytes
	record   = "/run/kubelets"
)

// bareDisk is one with an empty file system.
func bareDisk(t *testing.T) *disk.Disk {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	size := fmt.Sprintf("%dk", bareSize>>10)
	if output, err := exec.Command("mke2fs", "-q", "-t", "ext4", "-b", "4096", path, size).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	image, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { image.Close() })
	content, err := disk.New(image, bareSize)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// newBareNode gives one that is off and has a snapshot, and a Node for it whose Lease is renewed as long as the test runs.
func newBareNode(t *testing.T) *bareNode {
	t.Helper()
	o := newNode(t)
	b := &bareNode{newMachine(t, "bare", bareDisk(t), o.Command, "-netdev", "user,id=net"), o, &history{steps: []assigned{{good: true}}}}
	o.letNodesRead(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: cluster.NodeName}}
	if _, err := o.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	renews, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); o.renewLease(renews) }()
	t.Cleanup(func() { cancel(); <-over })

	b.takeSnapshot()
	b.resume()
	b.booted("")
	o.giveKeys(b.machine, "/disk/pki")
	b.write("/disk/kubeconfig", fmt.Sprintf(kubeconfig, "/disk/pki"))
	b.write("/disk/kubelet.yaml", fakeConfiguration)
	b.must("cp /run/machine/fake /disk/kubelet && sync")
	b.cut(rand.New(rand.NewPCG(0, 0)), 0)
	return b
}

const fakeConfiguration = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// letNodesRead lets nodes read every ConfigMap: each step has one of its own.
func (o *outside) letNodesRead(t *testing.T) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "every-configmap"}
	role := &rbacv1.Role{ObjectMeta: meta,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:nodes"}}}
	_, err := o.client.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{})
	if err == nil {
		_, err = o.client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// renewLease does it, and posts that the node is Ready, in the place of a fake kubelet, which does not know the API server.
func (o *outside) renewLease(ctx context.Context) {
	leases := o.client.CoordinationV1().Leases("kube-node-lease")
	for {
		now := metav1.NewMicroTime(time.Now())
		lease, err := leases.Get(ctx, cluster.NodeName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			holder, seconds := cluster.NodeName, int32(40)
			_, _ = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: holder},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now}}, metav1.CreateOptions{})
		} else if err == nil {
			lease.Spec.RenewTime = &now
			_, _ = leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
		status := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastHeartbeatTime":%q}]}}`, now.UTC().Format(time.RFC3339))
		_, _ = o.client.CoreV1().Nodes().Patch(ctx, cluster.NodeName, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status")
		select {
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Second):
		}
	}
}

// supervise starts the supervisor, without a network. No container runtime runs here, so that no change could be foreseen.
func (b *bareNode) supervise() {
	b.machine.Helper()
	b.must("ip link set eth0 down; FAKE_KUBELET_RECORD=%s setsid /run/machine/kubelet-supervisor run "+
		"--state-dir=/disk/state --disruption=allow --edit-spread=0 --trial-period=4s --log-format=text -- "+
		"/disk/kubelet --config=/disk/kubelet.yaml --kubeconfig=/disk/kubeconfig --hostname-override=%s >/run/log 2>&1 </dev/null &",
		record, cluster.NodeName)
}

// healthy waits for a healthy kubelet, and gives what it was started with.
func (b *bareNode) healthy() (runs *corev1.ConfigMapNodeConfigSource) {
	b.machine.Helper()
	// Each question for the status is a process that a starting supervisor has to share the machine with.
	b.must("n=0; until grep -q start %s || [ $((n+=1)) -gt 2000 ]; do usleep 50000; done", record)
	await(b.T, "a healthy kubelet", func() error {
		text, err := b.try("/run/machine/kubelet-supervisor status -o json")
		if err != nil {
			return err
		}
		var s struct {
			Healthy bool
			Runs    *struct {
				Source corev1.ConfigMapNodeConfigSource
			}
			StateProblems string
		}
		switch err := json.Unmarshal([]byte(text), &s); {
		case err != nil:
			return err
		case s.StateProblems != "":
			b.Fatalf("the state has problems: %s", s.StateProblems)
		case !s.Healthy:
			return errors.New(text)
		case s.Runs != nil:
			runs = &s.Runs.Source
		}
		return nil
	})
	if seen := b.must("cat %s", record); strings.Contains(seen, `"event":"beside"`) {
		b.Errorf("two kubelets at once: %s", seen)
	}
	return runs
}

// starts counts the kubelets that came to their start since the machine was switched on, and those of them that waited beside the one before.
func (b *bareNode) starts() (all, waited int) {
	b.machine.Helper()
	type event struct {
		Event string
		PID   int
	}
	alive, waiting := map[int]bool{}, map[int]bool{}
	for line := range strings.Lines(b.must("cat %s", record)) {
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			continue // just being written
		}
		switch e.Event {
		case "wait":
			waiting[e.PID] = len(alive) > 0
		case "start":
			alive[e.PID] = true
			all++
			if waiting[e.PID] {
				waited++
			}
		case "exit":
			delete(alive, e.PID)
		}
	}
	return all, waited
}

// step assigns something: a good configuration, one that dies, one that is refused, or local.
func (b *bareNode) step(t *testing.T, chance *rand.Rand) {
	t.Helper()
	pods := fmt.Sprintf("maxPods: %d\n", len(b.steps))
	switch chance.IntN(8) {
	case 0:
		b.stepOf(t, b.outside, "", true)
	case 1:
		b.stepOf(t, b.outside, fakeConfiguration+pods+"fake: {mode: crash, after: 300ms, healthyFirst: true}\n", false)
	case 2:
		b.stepOf(t, b.outside, fakeConfiguration+pods+"fake: {mode: refuse, words: no}\n", false)
	default:
		b.stepOf(t, b.outside, fakeConfiguration+pods+strings.Repeat("# some length\n", chance.IntN(2000)), true)
	}
}

// stepOf assigns a payload by a ConfigMap of its own; "" is local.
func (h *history) stepOf(t *testing.T, o *outside, payload string, good bool) {
	t.Helper()
	step := assigned{payload: payload, good: good}
	if payload != "" {
		name := fmt.Sprintf("step-%d", time.Now().UnixNano())
		made, err := o.client.CoreV1().ConfigMaps(namespace).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"kubelet": payload}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		step.source = &corev1.ConfigMapNodeConfigSource{
			Namespace: namespace, Name: name, UID: made.UID, ResourceVersion: made.ResourceVersion, KubeletConfigKey: "kubelet"}
	}
	h.steps = append(h.steps, step)
	o.assign(t, step.text())
}

// text is how the annotation names it.
func (a assigned) text() string {
	if a.source == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s/%s", a.source.Namespace, a.source.Name, a.source.KubeletConfigKey)
}

func (b *bareNode) listen(t *testing.T) { t.Helper(); b.listenTo(t, b.outside) }

// listenTo notes what the Node says is assigned. That it says local again is only known where it has said something else before.
func (h *history) listenTo(t *testing.T, o *outside) {
	t.Helper()
	v, err := o.view(t)
	if err != nil {
		return // it has said nothing yet
	}
	var said *corev1.ConfigMapNodeConfigSource
	if v.Config.Assigned != nil {
		said = v.Config.Assigned.ConfigMap
	}
	if i := h.find(said); i > h.told && (said != nil || v.Observed == "" && h.told == i-1) {
		h.told = i
	}
}
