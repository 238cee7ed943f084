//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// pluginHome is the cluster of the plugin's tests, its own because `install` changes it.
var pluginHome *node

// pluginNode is the node of a cluster on which `kubectl kubelet install` was run, with no Node object, no kubelet
// and nothing that was ever assigned.
func pluginNode(t *testing.T) *node {
	t.Helper()
	if pluginHome == nil {
		n := up(t, "e2e-plugin", newest)
		stdout, _ := n.plugin(t, "install", "--yes")
		for _, want := range []string{
			"namespace/kubelet-config installed", "validatingadmissionpolicy.admissionregistration.k8s.io/kubelet-supervisor-assignment installed",
			"validatingadmissionpolicybinding.admissionregistration.k8s.io/kubelet-supervisor-assignment installed",
			"role.rbac.authorization.k8s.io/kubelet-supervisor-node installed", "clusterrole.rbac.authorization.k8s.io/kubelet-supervisor-operator installed",
		} {
			if !strings.Contains(stdout, want+"\n") {
				t.Errorf("install does not say %q:\n%s", want, stdout)
			}
		}
		awaitPolicy(t, n)
		pluginHome = n
	}
	pluginHome.reset(t)
	pluginHome.forgetAssignments(t)
	return pluginHome
}

// forgetAssignments removes what the plugin made for other tests, and the events of their nodes.
func (n *node) forgetAssignments(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{"kubelet-config", "kube-system"} {
		for _, folder := range []string{"/api/v1/namespaces/" + namespace + "/configmaps", rbacPath + namespace + "/rolebindings", rbacPath + namespace + "/roles"} {
			n.must(t, http.MethodDelete, folder+"?labelSelector=kubelet-supervisor.io/purpose", nil, nil)
		}
	}
	n.must(t, http.MethodDelete, "/api/v1/namespaces/default/events", nil, nil)
}

const rbacPath = "/apis/rbac.authorization.k8s.io/v1/namespaces/"

// plugin runs `kubectl kubelet`, by the real kubectl as admin; it has to succeed.
func (n *node) plugin(t *testing.T, arguments ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, code := n.runPlugin(t, pluginRun{}, arguments...)
	if code != 0 {
		t.Fatalf("kubectl kubelet %s: exit code %d\n%s%s", strings.Join(arguments, " "), code, stdout, stderr)
	}
	return stdout, stderr
}

type pluginRun struct {
	stdin       string
	environment []string
}

// runPlugin runs it with any result.
func (n *node) runPlugin(t *testing.T, run pluginRun, arguments ...string) (stdout, stderr string, code int) {
	t.Helper()
	command := n.pluginCommand(t, arguments...)
	command.Env = append(command.Env, run.environment...)
	command.Stdin = strings.NewReader(run.stdin)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	code = command.ProcessState.ExitCode()
	t.Logf("$ kubectl kubelet %s\n%s%s(exit code %d)", strings.Join(arguments, " "), out.String(), errs.String(), code)
	return out.String(), errs.String(), code
}

// pluginCommand is the command line, as a person's shell would run it.
func (n *node) pluginCommand(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	folder, err := buildPluginOnce()
	if err != nil {
		t.Fatalf("building the plugin: %v", err)
	}
	words := n.KubectlArguments()
	command := exec.CommandContext(t.Context(), words[0], append([]string{words[1], words[2], words[3], "kubelet"}, arguments...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(n.Folder, "admin.kubeconfig"), "PATH="+folder+":"+os.Getenv("PATH"),
		"KUBECACHEDIR="+filepath.Join(n.Folder, "kubectl-cache")) // all clusters of these tests have one address
	return command
}

// buildPluginOnce gives the folder that has the plugin: what KUBELET_SUPERVISOR_TEST_PLUGIN names, or a new one.
var buildPluginOnce = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("KUBELET_SUPERVISOR_TEST_PLUGIN"); given != "" {
		return filepath.Dir(given), nil
	}
	folder := filepath.Join(scratch, "plugin")
	command := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=e2e", "-o", folder+"/", "./cmd/kubectl-kubelet")
	command.Dir = "../.."
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	return folder, command.Run()
})

// wantIn checks that a text has all parts, in this order.
func wantIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("%q is missing, or not in this order, in\n%s", part, text)
			return
		}
		rest = after
	}
}

// pushedName is the name of the ConfigMap that push made.
func pushedName(t *testing.T, stdout string) string {
	t.Helper()
	name, found := strings.CutPrefix(strings.Fields(stdout + " ?")[0], "configmap/")
	if !found {
		t.Fatalf("push printed %q", stdout)
	}
	return name
}
