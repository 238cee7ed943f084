//go:build linux

package pools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// The labels that layers for some nodes go by.
const (
	gpuLabel  = "gpu"
	realLabel = "soak-kubelet" // on the node with the real kubelet
)

// What a layer for the real kubelet has in it, by its nature. Static policies want other state files than the rest (rule 17).
var realPatches = map[string][]string{
	"": {`{"podPidsLimit":900}`, `{"cpuManagerPolicy":"static","systemReserved":{"cpu":"200m"}}`,
		`{"cpuManagerPolicy":"static","systemReserved":{"cpu":"200m"},"memoryManagerPolicy":"Static","reservedMemory":[{"numaNode":0,"limits":{"memory":"50Mi"}}]}`},
	refuses: {`{"featureGates":{"NoSuchGate":true}}`},
	dies:    {`{"systemReserved":{"memory":"1Ti"}}`, `{"cpuManagerPolicy":"static","systemReserved":{"cpu":"200m","memory":"1Ti"}}`},
}

// A realNode is the cluster's own node: the real kubelet below a supervisor, whose STATE_DIR is on a disk and whose metrics are on.
type realNode struct {
	cluster *cluster.Cluster
	program string // the supervisor's

	mutex      sync.Mutex // guards what follows
	supervisor *cluster.Program
}

func (n *realNode) path(name string) string { return filepath.Join(n.cluster.Folder, "real", name) }

// start starts the supervisor, which takes over the kubelet of one that was killed.
func (n *realNode) start() error {
	words := []string{n.program, "run", "--state-dir=" + n.path("state"), "--run-dir=" + n.path("run"), "--log-format=json", "--edit-spread=0", "--stop-timeout=10s",
		"--trial-period=2s", "--metrics-file=" + n.path("kubelet_supervisor.prom"), "--metrics-address=unix://" + n.path("metrics.sock"), "--"}
	program, err := n.cluster.Launch(n.path("log"), append(words, n.cluster.KubeletArguments()...)...)
	if err != nil {
		return fmt.Errorf("starting the supervisor of the real kubelet: %w", err)
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.supervisor = program
	return nil
}

func (n *realNode) running() *cluster.Program {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.supervisor
}

// kill kills the supervisor, and starts it again as systemd does.
func (n *realNode) kill() error {
	old := n.running()
	old.Signal(syscall.SIGKILL)
	<-old.Done
	return n.start()
}

// killKubelet kills whatever kubelet there is; there may be none just now.
func (n *realNode) killKubelet() {
	for _, pid := range n.kubelets() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// kubelets are the pids of this node's. A pre-flight has a flag that they have not.
func (n *realNode) kubelets() (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file) // one that has ended has none
		if bytes.HasPrefix(line, []byte(n.cluster.Kubelet()+"\x00")) && bytes.Contains(line, []byte("\x00--root-dir="+n.cluster.Folder+"/kubelet\x00")) &&
			!bytes.Contains(line, []byte("\x00--exit-on-lock-contention=true\x00")) {
			var pid int
			_, _ = fmt.Sscanf(strings.TrimPrefix(file, "/proc/"), "%d", &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// runs says whether one kubelet runs, with so many maxPods, by its own words.
func (n *realNode) runs(ctx context.Context, pods int) error {
	if pids := n.kubelets(); len(pids) != 1 {
		return fmt.Errorf("%s has %d kubelets: %v", cluster.NodeName, len(pids), pids)
	}
	text, err := n.configz(ctx)
	if err != nil {
		return err
	}
	var configz struct {
		KubeletConfig struct {
			MaxPods int `json:"maxPods"`
		} `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(text, &configz); err != nil {
		return fmt.Errorf("reading configz of %s: %w", cluster.NodeName, err)
	}
	if seen := configz.KubeletConfig.MaxPods; seen != pods {
		return fmt.Errorf("the kubelet of %s runs with maxPods %d, and its Node says that it runs what has %d", cluster.NodeName, seen, pods)
	}
	return nil
}

// configz asks the kubelet itself, for ten seconds at most.
func (n *realNode) configz(ctx context.Context) ([]byte, error) {
	asks, err := n.cluster.KubeletHTTP()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1:10250/configz", nil)
	if err != nil {
		return nil, err
	}
	response, err := asks.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the kubelet of %s: %w", cluster.NodeName, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("asking the kubelet of %s: %s: %.300s", cluster.NodeName, response.Status, text)
	}
	return text, err
}

// words are the supervisor's newest ones, without those of the kubelet that are no more than information.
func (n *realNode) words() string {
	log, _ := os.ReadFile(n.path("log"))
	var lines []string
	for line := range strings.Lines(string(log)) {
		if !strings.HasPrefix(line, "I1") && !strings.HasPrefix(line, "I0") {
			lines = append(lines, line)
		}
	}
	return "\nthe supervisor's last words:\n" + strings.Join(lines[max(0, len(lines)-60):], "")
}

// stop ends the supervisor, and the kubelet with it.
func (n *realNode) stop() error {
	p := n.running()
	if p == nil {
		return nil
	}
	if err := p.Stop(time.Minute); err != nil {
		return err
	}
	if pids := n.kubelets(); len(pids) > 0 {
		return fmt.Errorf("the supervisor of the real kubelet has ended, and left %v", pids)
	}
	return nil
}

// startReal makes the cluster's own node one of the pool.
func (s *soaker) startReal(ctx context.Context) error {
	s.real = &realNode{cluster: s.cluster, program: s.options.Supervisor}
	if err := errors.Join(os.MkdirAll(s.real.path(""), 0o700), os.WriteFile(s.cluster.KubeletConfigFile(), []byte(s.cluster.KubeletConfig()), 0o600)); err != nil {
		return err
	}
	if err := s.real.start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: cluster.NodeName}}
	for {
		err := s.admin.Get(ctx, client.ObjectKeyFromObject(n), n)
		if err == nil {
			break
		}
		if pause(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("waiting for Node %s: %w%s", cluster.NodeName, errors.Join(err, ctx.Err()), s.real.running().LastWords())
		}
	}
	s.names = append(s.names, cluster.NodeName)
	return s.patchNode(ctx, cluster.NodeName, map[string]any{"metadata": map[string]any{"labels": map[string]any{realLabel: "real", poolLabel: poolName}}})
}
