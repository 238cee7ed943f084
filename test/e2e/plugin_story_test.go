//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A life with the plugin: look, push, assign, edit, roll back, reset, clean up.
func TestPluginStory(t *testing.T) {
	n := pluginNode(t)
	s := n.startedLocal(t, options{KubeletFlags: []string{"--registry-qps=3"}}) // a flag, which wins over every configuration
	wantIn(t, first(n.plugin(t, "status")), "NODE", "ASSIGNED", "ACTIVE", "n1", "local", "local", "local", "True", "Local")

	// What runs is what can be pushed: with nothing but maxPods changed it has to run too.
	running := first(n.plugin(t, "config", cluster.NodeName))
	if changed := first(n.plugin(t, "config", cluster.NodeName, "--changed")); !strings.Contains(changed, "maxPods: 20\n") || strings.Contains(changed, "registryBurst") {
		t.Errorf("--changed gives\n%s", changed)
	}
	if !strings.Contains(running, "maxPods: 20\n") || !strings.Contains(running, "registryPullQPS: 3\n") {
		t.Fatalf("config gives\n%s", running)
	}
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(running, "maxPods: 20\n", "maxPods: 30\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr := n.plugin(t, "push", "workers", "-f", file)
	one := pushedName(t, stdout)
	wantIn(t, stderr, "Assign it: kubectl kubelet assign NODE --config kubelet-config/"+one)
	// The same name as kubectl gives, and so the same object.
	byKubectl, err := n.Kubectl(t.Context(), "create", "configmap", "workers", "--from-file=kubelet="+file, "--append-hash", "--dry-run=client", "-o=name")
	if err != nil || strings.TrimSpace(byKubectl) != "configmap/"+one {
		t.Errorf("kubectl names it %q, %v", byKubectl, err)
	}
	if again := first(n.plugin(t, "push", "workers", "-f", file)); again != "configmap/"+one+" unchanged\n" {
		t.Errorf("pushing again says %q", again)
	}

	stdout, stderr = n.plugin(t, "assign", "n1", "--config", one, "--yes")
	if stdout != "node/n1 assigned\n" {
		t.Errorf("assign prints %q", stdout)
	}
	wantIn(t, stderr, "maxPods: 20 → 30", "disrupts-pods", "n1: runs kubelet-config/"+one+"/kubelet")
	if strings.Count(stderr, "→") != 1 {
		t.Errorf("more than maxPods is said to change:\n%s", stderr)
	}
	if got := s.configz(t)["maxPods"]; got != 30.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 30", got)
	}
	wantIn(t, second(n.plugin(t, "assign", "n1", "--config", one, "--yes", "--until=good")), "Nothing changes", "n1: passed its trial with kubelet-config/"+one+"/kubelet")

	// Edited in an editor, with a field that the flag shadows.
	stdout, _, code := n.runPlugin(t, pluginRun{stdin: "y\n", environment: []string{"KUBE_EDITOR=sed -i -e 's/^maxPods: 30$/maxPods: 40/' -e 's/^registryPullQPS: 3$/registryPullQPS: 9/'"}}, "push", "workers", "--edit", "n1")
	if code != 0 {
		t.Fatal("push --edit failed")
	}
	two := pushedName(t, stdout)
	if stdout, _, code = n.runPlugin(t, pluginRun{}, "diff", "n1", "--config", two); code != 1 {
		t.Errorf("diff with differences ends with %d, want 1", code)
	}
	wantIn(t, stdout, "n1 runs kubelet-config/"+one+"/kubelet; with kubelet-config/"+two+"/kubelet:", "maxPods: 30 → 40", "registryPullQPS: 3 → 9")
	_, stderr, code = n.runPlugin(t, pluginRun{stdin: "y\n"}, "assign", "n1", "--config", "kubelet-config/"+two+"/kubelet", "--until=good")
	if code != 0 {
		t.Fatal("assign failed")
	}
	wantIn(t, stderr, "Assign kubelet-config/"+two+"/kubelet to node n1? [y/N]", "n1: runs it on trial", "n1: passed its trial")
	wantIn(t, first(n.plugin(t, "doctor", "n1")), "the node is Ready", "the supervisor answered", "is well-formed", "decodes", "the node may read",
		"wins over registryPullQPS (3 stays)", "the node says Active", "limits who may assign")
	wantIn(t, first(n.plugin(t, "describe", "n1")), "Assignment:", "kubelet-config/"+two+"/kubelet@", " (by annotation)", "Active:", two, "Last known good:", two, "Error:", "none",
		"KubeletConfigOk:", "True Active", "Events:", "KubeletConfigChanged", "KubeletConfigPromoted")

	// Back, by what was recorded.
	_, stderr = n.plugin(t, "rollback", "n1", "--yes")
	wantIn(t, stderr, "back to revision 2", "maxPods: 40 → 30", "n1: runs kubelet-config/"+one+"/kubelet")
	wantIn(t, first(n.plugin(t, "history", "n1")), "REVISION", "\n1 ", "local", "\n2 ", one, "\n3 ", two, "\n4 ", one)
	wantIn(t, first(n.plugin(t, "status", "n1")), "kubelet-config/"+one+"/kubelet")

	// What a node writes about itself moves no rollback.
	if record := first(n.plugin(t, "status", "n1", "-o", "jsonpath={.assignment}")); !strings.HasPrefix(record, "kubelet-config/"+one+"/kubelet@") { // what push makes is immutable
		t.Errorf("status -o jsonpath gives %q", record)
	}

	wantIn(t, second(n.plugin(t, "reset", "n1", "--yes")), "n1: runs its own configuration")
	if got := s.configz(t)["maxPods"]; got != 20.0 {
		t.Errorf("the kubelet runs with maxPods %v, want the local 20", got)
	}
	// The newest other assignment is what rollback goes back to, and stays.
	stdout, _ = n.plugin(t, "prune", "--yes", "--min-age=0")
	if want := "configmap/" + two + " pruned\n"; stdout != want {
		t.Errorf("prune prints %q, want %q", stdout, want)
	}
	if code, _ := n.request(http.MethodGet, "/api/v1/namespaces/kubelet-config/configmaps/"+one, nil, nil); code != http.StatusOK {
		t.Errorf("what rollback goes back to: %d", code)
	}
	wantIn(t, second(n.plugin(t, "rollback", "n1", "--yes")), "back to revision 4", "n1: runs kubelet-config/"+one+"/kubelet")
}

// A refused configuration ends the command with the kubelet's own words, and the nodes after it are left alone.
func TestPluginRefused(t *testing.T) {
	n := pluginNode(t)
	s := n.startedLocal(t, options{})
	before := s.kubelet(t)
	n.must(t, http.MethodPost, "/api/v1/nodes", nodeObject("n2", ""), nil)
	t.Cleanup(func() { n.remove(t, "/api/v1/nodes/n2") })
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(file, []byte(n.kubeletConfig(with("maxPods", -1))), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := pushedName(t, first(n.plugin(t, "push", "bad", "-f", file)))
	_, stderr, code := n.runPlugin(t, pluginRun{}, "assign", "n1", "n2", "--config", bad, "--yes")
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	wantIn(t, stderr, "error: node n1: Refused:", "maxPods (--max-pods) -1 must not be a negative number", "not begun: n2")
	if now := s.kubelet(t); now.ID != before.ID {
		t.Error("the kubelet was restarted")
	}
	wantIn(t, first(n.plugin(t, "status")), "n1", "False", "Refused: ", "n2", "no supervisor has met this node")
	stdout, _, code := n.runPlugin(t, pluginRun{}, "doctor", "n1")
	if code != 1 {
		t.Errorf("doctor: exit code %d, want 1", code)
	}
	wantIn(t, stdout, "WRONG   the node says Refused")
	_, stderr, code = n.runPlugin(t, pluginRun{stdin: "y\n"}, "retry", "n1", "--answer-timeout=3s")
	if code != 1 {
		t.Errorf("retry: exit code %d, want 1", code)
	}
	wantIn(t, stderr, "must not be a negative number")
}

// A node without a supervisor is told of, and not waited for.
func TestPluginWithoutSupervisor(t *testing.T) {
	n := pluginNode(t)
	n.must(t, http.MethodPost, "/api/v1/nodes", nodeObject("alone", ""), nil)
	t.Cleanup(func() { n.remove(t, "/api/v1/nodes/alone") })
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(file, []byte(n.kubeletConfig()), 0o600); err != nil {
		t.Fatal(err)
	}
	config := pushedName(t, first(n.plugin(t, "push", "alone", "-f", file)))
	_, stderr, code := n.runPlugin(t, pluginRun{}, "assign", "alone", "--config", config, "--yes", "--answer-timeout=2s")
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	wantIn(t, stderr, "No supervisor has met this node yet", "What would change is not known", "error: node alone has no supervisor: none has written a status on it within 2s; the node is not Ready")
	stdout, _, code := n.runPlugin(t, pluginRun{}, "doctor", "alone")
	if code != 1 {
		t.Errorf("doctor: exit code %d, want 1", code)
	}
	wantIn(t, stdout, "WRONG   the node is not Ready", "WRONG   no supervisor has met this node")
}

// A real kubelet without a supervisor: what needs the kubelet works, what needs a supervisor says that there is none.
func TestPluginKubeletAlone(t *testing.T) {
	n := pluginNode(t)
	words := n.KubeletArguments()
	kubelet := n.Command(words[0], words[1:]...)
	if err := kubelet.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = kubelet.Process.Signal(syscall.SIGTERM)
		_ = kubelet.Wait()
	})
	n.awaitNode(t, "the Node is Ready", func(v nodeView) bool { return v.Ready })
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	await(t, "its kubelet can be asked", func() error {
		stdout, stderr, code := n.runPlugin(t, pluginRun{}, "config", "n1")
		if code != 0 {
			return fmt.Errorf("%s", stderr)
		}
		return os.WriteFile(file, []byte(strings.Replace(stdout, "maxPods: 20\n", "maxPods: 31\n", 1)), 0o600)
	})
	config := pushedName(t, first(n.plugin(t, "push", "alone", "-f", file)))
	_, stderr, code := n.runPlugin(t, pluginRun{}, "assign", "n1", "--config", config, "--yes", "--answer-timeout=3s")
	if code != 1 {
		t.Errorf("assign: exit code %d, want 1", code)
	}
	wantIn(t, stderr, "No supervisor has met this node yet: nothing happens until one does.", "maxPods: 20 → 31",
		"error: node n1 has no supervisor: none has written a status on it within 3s; run its kubelet under kubelet-supervisor", "kubectl kubelet reset n1 removes it")
	wantIn(t, first(n.plugin(t, "status", "n1")), "kubelet-config/"+config+"/kubelet", "<none>", "no supervisor has met this node; see kubectl kubelet doctor n1")
	wantIn(t, first(n.plugin(t, "describe", "n1")), "Supervisor:", "none has met this node")
	stdout, _, code := n.runPlugin(t, pluginRun{}, "doctor", "n1", "--answer-timeout=1s")
	if code != 1 {
		t.Errorf("doctor: exit code %d, want 1", code)
	}
	wantIn(t, stdout, "ok      the node is Ready", "WRONG   no supervisor has met this node")
	wantIn(t, second(n.plugin(t, "reset", "n1", "--yes", "--answer-timeout=1s")), "no supervisor has written a status on it within 1s, so no supervisor has followed the assignment")
	if v, err := n.view(); err != nil || v.Node.Annotations[assignmentAnnotation] != "" {
		t.Errorf("after the reset the Node is %v, %v", v, err)
	}
}

// A ConfigMap in a namespace that nodes may not read: the node is let read this one, and loses that at the reset.
func TestPluginGrants(t *testing.T) {
	n := pluginNode(t)
	n.startedLocal(t, options{})
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(file, []byte(n.kubeletConfig(with("maxPods", 33))), 0o600); err != nil {
		t.Fatal(err)
	}
	config := pushedName(t, first(n.plugin(t, "push", "granted", "-f", file, "-n", "kube-system")))
	may := func(node string) bool {
		return n.allowed(t, "system:node:"+node, []string{"system:nodes"}, "get", "configmaps", "kube-system", config)
	}
	if may("n1") {
		t.Fatal("the node may read it already")
	}
	wantIn(t, second(n.plugin(t, "assign", "n1", "--config", "kube-system/"+config, "--yes")), "n1: may read ConfigMap kube-system/"+config, "n1: runs kube-system/"+config+"/kubelet")
	if !may("n1") || may("n2") {
		t.Errorf("n1 may read it: %v, n2: %v; want n1 alone", may("n1"), may("n2"))
	}
	if n.allowed(t, "system:node:n1", []string{"system:nodes"}, "list", "configmaps", "kube-system", "") {
		t.Error("n1 may list all of kube-system")
	}
	n.plugin(t, "reset", "n1", "--yes")
	await(t, "the permission is gone", func() error {
		if may("n1") {
			return fmt.Errorf("n1 may still read it")
		}
		return nil
	})
}

// The people of the shipped roles, and nobody else, get as far as they should; nodes/configz alone opens no configz through the API server.
func TestPluginAsOthers(t *testing.T) {
	n := pluginNode(t)
	n.startedLocal(t, options{})
	n.bind(t, "olga", "kubelet-supervisor-operator")
	n.bindIn(t, "kubelet-config", "olga", "Role", "kubelet-supervisor-operator")
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(file, []byte(n.kubeletConfig(with("maxPods", 34))), 0o600); err != nil {
		t.Fatal(err)
	}
	config := pushedName(t, first(n.plugin(t, "push", "olgas", "-f", file, "--as=olga")))
	_, stderr := n.plugin(t, "assign", "n1", "--config", config, "--yes", "--as=olga")
	wantIn(t, stderr, "maxPods: 20 → 34", "n1: runs kubelet-config/"+config+"/kubelet")
	wantIn(t, first(n.plugin(t, "history", "n1", "--as=olga")), config, "olga")
	n.plugin(t, "reset", "n1", "--yes", "--as=olga")

	n.bind(t, "patcher", "patcher", object{"apiGroups": []string{""}, "resources": []string{"nodes"}, "verbs": []string{"patch", "get", "list"}},
		object{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "verbs": []string{"get"}},
		object{"apiGroups": []string{""}, "resources": []string{"nodes/configz"}, "verbs": []string{"get"}})
	_, stderr, code := n.runPlugin(t, pluginRun{}, "assign", "n1", "--config", config, "--yes", "--as=patcher")
	if code != 1 {
		t.Errorf("patching nodes alone: exit code %d, want 1", code)
	}
	wantIn(t, stderr, "What would change is not known", "nodes/proxy", "error: assigning kubelet-config/"+config+"/kubelet to node n1", "assign-kubelet-config")
	if code, err := requestAs(n.identity(t, "patcher"), http.MethodGet, nodePath+"/proxy/configz", nil, nil); code != http.StatusForbidden {
		t.Errorf("nodes/configz opens configz through the API server now (%d, %v): say so in configz.go", code, err)
	}
}

// bindIn binds a role of a namespace to a user.
func (n *node) bindIn(t *testing.T, namespace, user, kind, role string) {
	t.Helper()
	n.replace(t, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/rolebindings", role+"-"+user, object{
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
	})
	await(t, user+" may create ConfigMaps", func() error {
		if !n.allowed(t, user, nil, "create", "configmaps", namespace, "") {
			return fmt.Errorf("not yet")
		}
		return nil
	})
}

// An API server that keeps spec.configSource is assigned by it.
func TestPluginField(t *testing.T) {
	n := nodeOf(t, keepsTheAPI)
	n.startedLocal(t, options{})
	wantIn(t, second(n.plugin(t, "install", "--dry-run=server")), "This API server has no admission policies (Kubernetes 1.30 and later have), so kubelet-supervisor-assignment is not installed")
	config := n.createConfigMap(t, "kubelet-config", uniqueName("field"), map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 35))})
	wantIn(t, second(n.plugin(t, "assign", "n1", "--config", config.Name, "--yes")), "n1: runs "+config.assignment("kubelet"))
	v, err := n.view()
	if err != nil || v.Node.Spec.ConfigSource == nil || v.Node.Annotations[assignmentAnnotation] != "" {
		t.Errorf("the Node is %v, %v; want spec.configSource and no annotation", v, err)
	}
	wantIn(t, first(n.plugin(t, "describe", "n1")), config.assignment("kubelet")+" (by spec.configSource)")
	n.plugin(t, "reset", "n1", "--yes")
	if v, err = n.view(); err != nil || v.Node.Spec.ConfigSource != nil {
		t.Errorf("after the reset the Node is %v, %v", v, err)
	}
}

func first(stdout, _ string) string  { return stdout }
func second(_, stderr string) string { return stderr }
