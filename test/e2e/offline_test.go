//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// Without an API server the node goes on with what it has on disk; what was assigned meanwhile is followed afterwards.
func TestOffline(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	before := n.putConfigMap(t, "before", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 91))})
	after := n.putConfigMap(t, "after", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 92))})
	n.assign(t, before.assignment("kubelet"))
	n.awaitReason(t, before.assignment("kubelet"), "Active")
	s.stop(t)
	n.assign(t, after.assignment("kubelet"))
	n.stopAPIServer(t)

	s = n.startSupervisor(t, options{After: s})
	offline := s.kubelet(t)
	if got := s.configz(t)["maxPods"]; got != 91.0 {
		t.Errorf("without an API server the kubelet runs with maxPods %v, want 91 from its checkpoint", got)
	}
	kill(t, offline)
	await(t, "the kubelet that was killed is replaced", func() error { return differs(n.kubelets(t), offline) })
	again := s.kubelet(t)
	if r := s.record(t); r.Runs == nil || r.Runs.Source.UID != before.UID || r.Condition.Reason != "Active" {
		t.Errorf("without an API server state.json says that %v runs, %s; want %s, Active", r.Runs, r.Condition.Reason, before.UID)
	}

	n.startAPIServer(t)
	v := n.awaitReason(t, after.assignment("kubelet"), "InTrial")
	wantStatus(t, v, after.source("kubelet"), after.source("kubelet"), before.source("kubelet"), "")
	if now := s.kubelet(t); now.ID == again.ID {
		t.Error("the kubelet was not restarted for what was assigned")
	}
	if got := s.configz(t)["maxPods"]; got != 92.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 92", got)
	}

	// An API server that goes under a running pair changes nothing either.
	n.awaitReason(t, after.assignment("kubelet"), "Active")
	running := s.kubelet(t)
	n.stopAPIServer(t)
	kill(t, running)
	await(t, "the kubelet that was killed is replaced", func() error { return differs(n.kubelets(t), running) })
	s.kubelet(t)
	n.startAPIServer(t)
	n.unassign(t)
	v = n.awaitReason(t, "", "Local")
	wantStatus(t, v, nil, nil, nil, "")
}

// A kubelet that bootstraps has no kubeconfig and no health until somebody signs its certificate. It is left in peace, and its
// Node is followed as soon as there is one.
func TestBootstrap(t *testing.T) {
	n := sharedNode(t)
	folder := filepath.Join(n.Folder, uniqueName("bootstrap"))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	n.writeBootstrapKubeconfig(t, filepath.Join(folder, "bootstrap.kubeconfig"))
	kubeconfig := filepath.Join(folder, "kubeconfig")
	s := n.startSupervisor(t, options{Flags: []string{"--start-timeout=5s"}, KubeletFlags: []string{
		"--kubeconfig=" + kubeconfig, "--bootstrap-kubeconfig=" + filepath.Join(folder, "bootstrap.kubeconfig"), "--cert-dir=" + filepath.Join(folder, "pki"),
	}})
	request := n.awaitSigningRequest(t)
	waiting := n.kubelets(t)
	holds(t, 6*time.Second, "one kubelet waits for its certificate", func() error {
		if now := n.kubelets(t); len(now) != 1 || len(waiting) != 1 || now[0].ID != waiting[0].ID {
			return fmt.Errorf("kubelets %v, before: %v", now, waiting)
		}
		if _, err := os.Stat(kubeconfig); err == nil {
			return fmt.Errorf("%s is there already", kubeconfig)
		}
		return nil
	})
	if s.record(t).Healthy {
		t.Error("state.json says that a kubelet is healthy that waits for its certificate")
	}

	n.approve(t, request)
	n.awaitReason(t, "", "Local")
	if now := s.kubelet(t); now.ID != waiting[0].ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", waiting[0].ID, now.ID)
	}
	config := n.putConfigMap(t, "bootstrapped", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 93))})
	n.assign(t, config.assignment("kubelet"))
	v := n.awaitReason(t, config.assignment("kubelet"), "InTrial")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), nil, "")
}

// Certificates are replaced below the same kubeconfig. The new ones make the node member of one more group, which alone may read
// what is assigned.
func TestCertificateRotation(t *testing.T) {
	n := sharedNode(t)
	config := &configMap{node: n, ConfigMap: &corev1.ConfigMap{}}
	n.must(t, http.MethodPost, fmt.Sprintf(configFolder, "kube-system"), object{
		"metadata": object{"name": uniqueName("rotated")}, "data": object{"kubelet": n.kubeletConfig(with("maxPods", 94))},
	}, config.ConfigMap)
	t.Cleanup(func() { config.delete(t) })
	n.allowGroup(t, "rotated", config.Name)

	s := n.startedLocal(t, options{})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	n.awaitReason(t, assignment, "SyncFailed")
	kubelet := s.kubelet(t)

	identity, err := n.IdentityConfig("system:node:"+cluster.NodeName, "system:nodes", "rotated")
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{"node.crt": identity.CertData, "node.key": identity.KeyData} {
		n.replaceFile(t, filepath.Join(n.Folder, "pki", file), content)
	}
	// A connection that stands keeps the identity that opened it.
	n.stopAPIServer(t)
	n.startAPIServer(t)
	v := n.awaitReason(t, assignment, "InTrial")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), nil, "")
	if now := s.kubelet(t); now.ID == kubelet.ID {
		t.Error("the kubelet was not restarted for what was assigned")
	}
}

// stopAPIServer stops it; it is started again at the latest when the test ends.
func (n *node) stopAPIServer(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { n.startAPIServer(t) })
	n.StopAPIServer()
}

func (n *node) startAPIServer(t *testing.T) {
	t.Helper()
	if err := n.StartAPIServer(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// replaceFile replaces a file in one step, and puts the old content back when the test ends.
func (n *node) replaceFile(t *testing.T, path string, content []byte) {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(content []byte) {
		if err := os.WriteFile(path+".new", content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	replace(content)
	t.Cleanup(func() { replace(before) })
}

// allowGroup lets a group read one ConfigMap of kube-system.
func (n *node) allowGroup(t *testing.T, group, configMap string) {
	t.Helper()
	const folder = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/"
	n.must(t, http.MethodPost, folder+"roles", object{"metadata": object{"name": group}, "rules": []object{{
		"apiGroups": []string{""}, "resources": []string{"configmaps"}, "resourceNames": []string{configMap}, "verbs": []string{"get", "list", "watch"},
	}}}, nil)
	t.Cleanup(func() { n.remove(t, folder+"roles/"+group) })
	n.must(t, http.MethodPost, folder+"rolebindings", object{
		"metadata": object{"name": group},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": group},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}},
	}, nil)
	t.Cleanup(func() { n.remove(t, folder+"rolebindings/"+group) })
}

const (
	signingRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	bootstrappers   = "system:bootstrappers"
)

// writeBootstrapKubeconfig writes a kubeconfig whose user may do nothing but ask for a certificate.
func (n *node) writeBootstrapKubeconfig(t *testing.T, path string) {
	t.Helper()
	const bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	n.must(t, http.MethodPost, bindings, object{
		"metadata": object{"name": "bootstrap"},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-bootstrapper"},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": bootstrappers}},
	}, nil)
	t.Cleanup(func() { n.remove(t, bindings+"/bootstrap") })
	identity, err := n.IdentityConfig("system:bootstrap:e2e", bootstrappers)
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: identity.Host, CertificateAuthorityData: identity.CAData}
	config.AuthInfos["it"] = &clientcmdapi.AuthInfo{ClientCertificateData: identity.CertData, ClientKeyData: identity.KeyData}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	config.CurrentContext = "it"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
}

// A signingRequest is a CertificateSigningRequest, as far as it is needed here.
type signingRequest struct {
	Metadata struct{ Name string }
	Spec     struct{ Request []byte }
}

func (n *node) awaitSigningRequest(t *testing.T) signingRequest {
	t.Helper()
	var list struct{ Items []signingRequest }
	await(t, "the kubelet asks for a certificate", func() error {
		_, err := n.request(http.MethodGet, signingRequests, nil, &list)
		if err == nil && len(list.Items) != 1 {
			err = fmt.Errorf("%d signing requests", len(list.Items))
		}
		return err
	})
	t.Cleanup(func() { n.remove(t, signingRequests+"/"+list.Items[0].Metadata.Name) })
	return list.Items[0]
}

// approve does the controller manager's part: it approves the request and answers it with a certificate.
func (n *node) approve(t *testing.T, request signingRequest) {
	t.Helper()
	certificate, err := n.SignClientRequest(request.Spec.Request)
	if err != nil {
		t.Fatal(err)
	}
	path := signingRequests + "/" + request.Metadata.Name
	n.must(t, http.MethodPatch, path+"/approval", object{"status": object{"conditions": []object{{"type": "Approved", "status": "True", "reason": "Test"}}}}, nil)
	n.must(t, http.MethodPatch, path+"/status", object{"status": object{"certificate": certificate}}, nil)
}
