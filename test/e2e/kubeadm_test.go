//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// kubeadmPayload is what kubeadm init writes into kube-system/kubelet-config, empty and zero fields and all: what kubeadm 1.36.3 says to
// `config print init-defaults --component-configs KubeletConfiguration`, and resolvConf, which it adds where systemd-resolved runs
// (cmd/kubeadm/app/componentconfigs/kubelet.go).
const kubeadmPayload = `apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
kind: KubeletConfiguration
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
`

// kubeadm's own ConfigMap can be assigned as it is: with no more rights than kubeadm gives, and with the effect of kubeadm's having
// written it to the node's --config file. The payload is not edited. What this node needs beside it, where a machine of kubeadm's needs
// less, comes as an administrator would bring it: by flags and a drop-in file.
func TestKubeadmsConfigMapIsAssignedAsItIs(t *testing.T) {
	n := sharedNode(t)
	node := n.likeKubeadms(t)
	node.Local = kubeadmPayload
	s := n.startedLocal(t, node)
	want := s.configz(t)
	s.stop(t)

	node.Local = n.kubeletConfig() // another one, with maxPods 20
	s = n.startedLocal(t, node)
	config := n.createUnreadable(t, "kube-system", "kubelet-config", map[string]string{"kubelet": kubeadmPayload})
	n.kubeadmsRole(t)
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	v := n.awaitReason(t, assignment, "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	wantCondition(t, v, corev1.ConditionTrue, fmt.Sprintf("using current (UID: %q)", config.UID))
	if difference := cmp.Diff(want, s.configz(t)); difference != "" {
		t.Errorf("the kubelet's configuration, - from the local file, + assigned:\n%s", difference)
	}
	if want["maxPods"] != 110.0 || want["staticPodPath"] != "/etc/kubernetes/manifests" || want["syncFrequency"] != "1m0s" {
		t.Errorf("not the payload, with the kubelet's defaults: %v", want)
	}
	await(t, "the Node is ready with it", func() error {
		if v, err := n.view(); err != nil || !v.Ready {
			return fmt.Errorf("%v %s", err, v)
		}
		return nil
	})
}

// likeKubeadms gives the node what the payload is about: /etc/kubernetes with the cluster's CA, and the resolv.conf of systemd-resolved, for the
// supervisor and its kubelet alone.
func (n *node) likeKubeadms(t *testing.T) options {
	t.Helper()
	folder := filepath.Join(n.Folder, uniqueName("kubeadm"))
	authority, err := os.ReadFile(filepath.Join(n.Folder, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, content string, mode os.FileMode) string {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	put("etc/kubernetes/pki/ca.crt", string(authority), 0o644)
	if err := os.Mkdir(filepath.Join(folder, "etc/kubernetes/manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	// cgroupDriver: systemd stays: the kubelet takes the container runtime's own, which is cgroupfs here.
	put("kubelet.conf.d/10-host.conf", fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
tlsCertFile: %[1]s/pki/kubelet-serving.crt # configz is asked by a client that knows the cluster's CA alone
tlsPrivateKeyFile: %[1]s/pki/kubelet-serving.key
cgroupRoot: %[2]s # several nodes on one machine
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
podLogsDir: %[1]s/pod-logs
volumePluginDir: %[1]s/volume-plugins
evictionHard: {memory.available: 50Mi}
imageGCHighThresholdPercent: 100
%[3]s`, n.Folder, n.cgroupRoot(t), cluster.KubeletOOMScore().Lines()), 0o644)
	put("systemd/resolve/resolv.conf", "nameserver 192.0.2.1\n", 0o644)
	inside := fmt.Sprintf("mount -t overlay -o ro,lowerdir=%[1]s/etc:/etc overlay /etc && mount -t overlay -o ro,lowerdir=%[1]s/systemd:/run/systemd overlay /run/systemd && "+
		"exec \"$0\" \"$@\"", folder)
	return options{
		Binary: put("kubelet-supervisor", fmt.Sprintf("#!/bin/sh\nexec unshare --mount --propagation slave sh -c '%s' %s \"$@\"\n", inside, supervisorBinary(t)), 0o755),
		KubeletFlags: []string{
			"--config-dir=" + filepath.Join(folder, "kubelet.conf.d"),
			"--container-runtime-endpoint=unix://" + n.Folder + "/containerd.sock", // as in kubeadm-flags.env before 1.36
		},
	}
}

// cgroupRoot is that of the node's own configuration.
func (n *node) cgroupRoot(t *testing.T) (root string) {
	t.Helper()
	n.kubeletConfig(func(config object) { root = config["cgroupRoot"].(string) })
	return root
}

// kubeadmsRole lets nodes read the ConfigMap as kubeadm does (cmd/kubeadm/app/phases/kubelet/config.go): to get it, and not to list or
// watch it.
func (n *node) kubeadmsRole(t *testing.T) {
	t.Helper()
	const api, name = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/", "kubeadm:kubelet-config"
	n.must(t, http.MethodPost, api+"roles", object{"metadata": object{"name": name}, "rules": []object{
		{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "resourceNames": []string{"kubelet-config"}, "verbs": []string{"get"}}}}, nil)
	n.must(t, http.MethodPost, api+"rolebindings", object{"metadata": object{"name": name},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
		"subjects": []object{{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:nodes"}}}, nil)
	t.Cleanup(func() {
		n.remove(t, api+"rolebindings/"+name)
		n.remove(t, api+"roles/"+name)
	})
}
