//go:build e2e

package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// realNode is the one node with a machine: the real kubelet below the real supervisor, among puppets.
type realNode struct {
	c         *crew
	folder    string // state/, run/, kubelet.yaml
	localFile string
	program   *cluster.Program
}

// oneKubelet is held by the test that has the real node: its name and its ports are there once.
var oneKubelet sync.Mutex

// makeReal makes the real node a member of the crew's pool, Ready, with lines added to its own file. It goes with the test.
func (c *crew) makeReal(lines string) *realNode {
	c.t.Helper()
	oneKubelet.Lock()
	c.t.Cleanup(oneKubelet.Unlock)
	c.realSince = time.Now()
	return c.startReal(lines)
}

// owns tells whether a Node was of this crew then: one of its puppets, or the real node since it is here.
func (c *crew) owns(name string, at time.Time) bool {
	return strings.HasPrefix(name, c.pool+"-") || name == cluster.NodeName && !c.realSince.IsZero() && at.After(c.realSince)
}

func (c *crew) startReal(lines string) *realNode {
	c.t.Helper()
	binary, err := c.supervisor, error(nil)
	if binary == "" {
		binary, err = supervisorBinary()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	folder, err := os.MkdirTemp(c.f.Folder, "real-") // short enough for sockets
	if err != nil {
		c.t.Fatal(err)
	}
	r := &realNode{c: c, folder: folder, localFile: filepath.Join(folder, "kubelet.yaml")}
	r.writeLocal(lines)
	kubelet := c.f.KubeletArguments()
	for i, word := range kubelet {
		if strings.HasPrefix(word, "--config=") {
			kubelet[i] = "--config=" + r.localFile
		}
	}
	words := append([]string{binary, "run", "--state-dir=" + filepath.Join(folder, "state"), "--run-dir=" + r.runDir(), "--trial-period=5s",
		"--edit-spread=0", "--log-format=text", "--"}, kubelet...)
	if r.program, err = c.f.Launch(filepath.Join(folder, "log"), words...); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(r.end)
	r.await("it is Ready, and its supervisor says Local", func(n *corev1.Node) bool {
		return isReady(n) && rollout.ReadNode(n).Reason == "Local"
	})
	if err := c.f.admin.Patch(c.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: cluster.NodeName}},
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, poolLabel, c.pool))); err != nil {
		c.t.Fatal(err)
	}
	return r
}

// end stops the supervisor, with its kubelet, and removes the Node. A second call does nothing.
func (r *realNode) end() {
	if r.program == nil {
		return
	}
	if err := r.program.Stop(30 * time.Second); err != nil {
		r.c.t.Error(err)
	}
	if r.c.t.Failed() {
		r.c.t.Log(r.program.LastWords())
	}
	r.program = nil
	if err := r.c.f.admin.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: cluster.NodeName}}); err != nil {
		r.c.t.Error(err)
	}
}

func (r *realNode) runDir() string { return filepath.Join(r.folder, "run") }

// writeLocal replaces the node's own file.
func (r *realNode) writeLocal(lines string) {
	r.c.t.Helper()
	next := r.localFile + ".next"
	if err := os.WriteFile(next, []byte(r.c.f.KubeletConfig()+lines), 0o600); err != nil {
		r.c.t.Fatal(err)
	}
	if err := os.Rename(next, r.localFile); err != nil {
		r.c.t.Fatal(err)
	}
}

func (r *realNode) node() (*corev1.Node, error) {
	var n corev1.Node
	err := r.c.f.admin.Get(r.c.t.Context(), types.NamespacedName{Name: cluster.NodeName}, &n)
	return &n, err
}

// await waits until the Node is so.
func (r *realNode) await(what string, holds func(*corev1.Node) bool) *corev1.Node {
	r.c.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; wait(r.c.t.Context(), 100*time.Millisecond) {
		n, err := r.node()
		if err == nil && holds(n) {
			return n
		}
		if time.Now().After(deadline) {
			r.c.t.Fatalf("waited in vain until %s: %v, annotations %v, conditions %+v%s", what, err, n.Annotations, n.Status.Conditions, r.program.LastWords())
		}
	}
}

// awaitWord waits until the supervisor speaks of an assignment with this reason.
func (r *realNode) awaitWord(source, reason string) rollout.Node {
	r.c.t.Helper()
	return rollout.ReadNode(r.await(source+" is "+reason, func(n *corev1.Node) bool {
		is := rollout.ReadNode(n)
		return is.Observed == source && is.Reason == reason
	}))
}

// wantFields compares what the kubelet runs with; it answers a moment after it is healthy.
func (r *realNode) wantFields(want map[string]any) {
	r.c.t.Helper()
	var config map[string]any
	var err error
	for range 100 {
		if config, err = r.c.f.Configz(r.c.t.Context()); err == nil {
			break
		}
		wait(r.c.t.Context(), 100*time.Millisecond)
	}
	for field, value := range want {
		if fmt.Sprint(config[field]) != fmt.Sprint(value) {
			r.c.t.Errorf("the kubelet runs with %s %v, want %v (%v)", field, config[field], value, err)
		}
	}
}

// kubelet is the process of the kubelet that the supervisor runs.
func (r *realNode) kubelet() int {
	r.c.t.Helper()
	record, _, err := supervisor.ReadRecord(r.runDir())
	if err != nil || record.Child == nil {
		r.c.t.Fatalf("state.json has no kubelet: %+v, %v", record, err)
	}
	return record.Child.PID
}

// rollToRealFirst makes the pool with contents of which each is like the other, until one has the real node before all others in the wave of
// the canary: the order is that of sha256(uid, content), so that no node is always the first. It gives the content's number.
func (r *realNode) rollToRealFirst(inline func(number int) string, changes ...func(*v1alpha1.KubeletPool)) int {
	r.c.t.Helper()
	paused := true
	r.c.roll(append(changes, func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.Paused = paused })...)
	for number := 1; number < 200; number++ {
		r.c.change(fmt.Sprintf(`{"spec":{"layers":[{"name":"density","inline":%s}]}}`, inline(number)))
		p := r.c.await("it has a target", 30*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Target.Hash != "" })
		if r.first(p.Status.Target.Hash) {
			r.c.change(`{"spec":{"rollout":{"paused":false}}}`)
			return number
		}
	}
	r.c.t.Fatal("no content has the real node first")
	return 0
}

func (r *realNode) first(hash string) bool {
	r.c.t.Helper()
	var nodes corev1.NodeList
	if err := r.c.f.admin.List(r.c.t.Context(), &nodes, client.MatchingLabels{poolLabel: r.c.pool}); err != nil {
		r.c.t.Fatal(err)
	}
	ranks := map[string][sha256.Size]byte{}
	for _, n := range nodes.Items {
		ranks[n.Name] = sha256.Sum256([]byte(string(n.UID) + hash))
	}
	ours := ranks[cluster.NodeName]
	for _, other := range ranks {
		if bytes.Compare(other[:], ours[:]) < 0 {
			return false
		}
	}
	return true
}

func isReady(n *corev1.Node) bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

var supervisorBinary = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("KUBELET_SUPERVISOR_TEST_BINARY"); given != "" {
		return given, nil
	}
	file := filepath.Join(scratch, "kubelet-supervisor")
	build := exec.Command("go", "build", "-o", file, "../../cmd/kubelet-supervisor")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the supervisor: %w\n%s", err, output)
	}
	return file, nil
})
