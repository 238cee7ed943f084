//go:build e2e

package cluster_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pause"}, "spec": {
  "nodeName": "n1", "hostNetwork": true, "terminationGracePeriodSeconds": 0,
  "containers": [{"name": "pause", "image": "registry.k8s.io/pause:3.10", "imagePullPolicy": "Never"}]}}`

// A plain kubelet becomes Ready on both API servers and runs a pod, and Down leaves nothing: the kubelet and the pod are left
// running on purpose. (On 1.24.17 no pod runs: that API server cannot select Services as this kubelet asks for them.)
func TestUpAndDown(t *testing.T) {
	for _, version := range []string{"1.36.3", "1.24.17"} {
		t.Run(version, func(t *testing.T) {
			ctx := t.Context()
			before := sharedState(t)
			c := up(t, cluster.Options{Name: "up-and-down", APIServer: version})
			kubelet := startKubelet(t, c)

			eventually(t, "the Node is Ready", func() bool {
				out, err := c.Kubectl(ctx, "get", "node", "n1", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
				return err == nil && out == "True"
			})
			if version == "1.36.3" {
				runPod(t, c)
			}
			config, err := c.Configz(ctx)
			if err != nil || config["eventRecordQPS"] != 7.0 {
				t.Errorf("configz: eventRecordQPS %v (%v), want 7", config["eventRecordQPS"], err)
			}
			if len(leftovers(t, c.Name)) < 4 { // registration, folder, a cgroup, the namespace
				t.Errorf("a cluster that is up leaves only %v: that none is left would prove nothing", leftovers(t, c.Name))
			}

			text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
			if limit, _ := strconv.Atoi(strings.TrimSpace(string(text))); limit < cluster.EnoughInotify {
				t.Errorf("there is no room for other clusters: %q inotify instances (%v), want %d", text, err, cluster.EnoughInotify)
			}

			if err := c.Down(); err != nil {
				t.Fatal(err)
			}
			_ = kubelet.Wait() // killed by Down
			if err := c.Down(); err != nil {
				t.Errorf("the second Down: %v", err)
			}
			wantNothingLeft(t, c.Name, before)
		})
	}
}

func runPod(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	kubectl := exec.Command(c.KubectlArguments()[0], append(c.KubectlArguments()[1:], "create", "-f", "-")...)
	kubectl.Stdin = strings.NewReader(pod)
	if out, err := kubectl.CombinedOutput(); err != nil {
		t.Fatalf("creating a pod: %v: %s", err, out)
	}
	eventually(t, "the pod runs", func() bool {
		out, err := c.Kubectl(t.Context(), "get", "pod", "pause", "-o", "jsonpath={.status.phase}")
		return err == nil && out == "Running"
	})
}

func TestPartsStopAndStart(t *testing.T) {
	ctx := t.Context()
	c := up(t, cluster.Options{Name: "stop-and-start"})
	if err := c.ReadConfigMapsRole(ctx, "kube-system", "one"); err != nil {
		t.Error(err)
	}
	if err := c.ReadConfigMapsRole(ctx, "kube-system", "one", "two"); err != nil {
		t.Errorf("the second time: %v", err)
	}
	c.StopAPIServer()
	if connection, err := c.Dial(ctx, "tcp", "127.0.0.1:6443"); err == nil {
		_ = connection.Close()
		t.Error("the stopped API server takes connections")
	}
	if err := c.StartAPIServer(ctx); err != nil {
		t.Error(err)
	}
	out, err := c.Kubectl(ctx, "get", "role", "kubelet-config", "-n", "kube-system", "-o", "jsonpath={.rules[0].resourceNames}")
	if err != nil || out != `["one","two"]` {
		t.Errorf("after the API server came back: %q, %v", out, err)
	}
	c.StopContainerd()
	if connection, err := net.Dial("unix", filepath.Join(c.Folder, "containerd.sock")); err == nil {
		_ = connection.Close()
		t.Error("the stopped containerd takes connections")
	}
	if err := c.StartContainerd(ctx); err != nil {
		t.Error(err)
	}
}

// A process that is killed cannot take its cluster down; the next Up does, whatever its name.
func TestWhatAKilledRunLeft(t *testing.T) {
	if os.Getenv("KILLED_RUN") != "" {
		if _, err := cluster.Up(t.Context(), cluster.Options{Name: "killed"}); err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	before := sharedState(t)
	killed := exec.Command(os.Args[0], "-test.run=^TestWhatAKilledRunLeft$")
	killed.Env = append(os.Environ(), "KILLED_RUN=1")
	out, _ := killed.CombinedOutput()
	if len(leftovers(t, "killed")) < 4 {
		t.Fatalf("the killed run left nothing to clean up: %s", out)
	}
	c := up(t, cluster.Options{Name: "after-killed"})
	wantNothingLeft(t, "killed", "")
	if err := c.Down(); err != nil {
		t.Fatal(err)
	}
	wantNothingLeft(t, "after-killed", before)
}

func TestOptionsThatCannotWork(t *testing.T) {
	c := up(t, cluster.Options{Name: "taken"})
	for name, options := range map[string]cluster.Options{
		"is up, in a process that still runs": {Name: c.Name},
		"lower-case letters":                  {Name: "Not a name"},
		"make parts builds them":              {Name: "no-parts", Parts: t.TempDir()},
		"is not empty":                        {Name: "folder", Folder: c.Folder},
	} {
		if _, err := cluster.Up(t.Context(), options); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: got %v, want an error with %q", options, err, name)
		}
	}
	if _, err := os.Stat(c.KubeletConfigFile()); err != nil {
		t.Errorf("the cluster that was up has suffered: %v", err)
	}
}

func up(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	options.Log = t.Output()
	c, err := cluster.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Down(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func startKubelet(t *testing.T, c *cluster.Cluster) *exec.Cmd {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "kubelet.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if content, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the kubelet's log ends:\n%s", content[max(0, len(content)-4000):])
		}
		_ = log.Close()
	})
	arguments := c.KubeletArguments()
	kubelet := c.Command(arguments[0], arguments[1:]...)
	kubelet.Stdout, kubelet.Stderr = log, log
	if err := kubelet.Start(); err != nil {
		t.Fatal(err)
	}
	return kubelet
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-ticker.C:
		}
	}
}

// leftovers are the traces of one cluster on the machine, except processes: none is left where its cgroups and its folder,
// with the network namespace, are gone.
func leftovers(t *testing.T, name string) []string {
	t.Helper()
	found := []string{}
	for _, pattern := range []string{
		"/sys/fs/cgroup/kubelet-supervisor-NAME", "/sys/fs/cgroup/*/kubelet-supervisor-NAME",
		"/run/kubelet-supervisor-test/NAME.json", filepath.Join(os.TempDir(), "kubelet-supervisor-NAME"),
	} {
		files, err := filepath.Glob(strings.ReplaceAll(pattern, "NAME", name))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, files...)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "kubelet-supervisor-"+name+"/") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// sharedState is what all clusters of the machine change together, and the last one restores; "" when another one is up.
func sharedState(t *testing.T) string {
	t.Helper()
	if others, _ := filepath.Glob("/run/kubelet-supervisor-test/*.json"); len(others) > 0 {
		return ""
	}
	var state []string
	for _, file := range []string{"fs/inotify/max_user_instances", "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"} {
		value, err := os.ReadFile("/proc/sys/" + file)
		if err != nil {
			t.Fatal(err)
		}
		state = append(state, file+" "+strings.TrimSpace(string(value)))
	}
	for _, pattern := range []string{"/run/containerd", "/run/containerd/s/*", "/var/lib/kubelet", "/var/log/containers/*"} {
		found, _ := filepath.Glob(pattern)
		state = append(state, found...)
	}
	return strings.Join(state, "\n")
}

func wantNothingLeft(t *testing.T, name, sharedBefore string) {
	t.Helper()
	if left := leftovers(t, name); len(left) > 0 {
		t.Errorf("cluster %s left:\n%s", name, strings.Join(left, "\n"))
	}
	if after := sharedState(t); after != sharedBefore && after != "" && sharedBefore != "" {
		t.Errorf("before:\n%s\nafter:\n%s", sharedBefore, after)
	}
}
