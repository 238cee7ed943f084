//go:build linux

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	healthzURL = "http://127.0.0.1:10248/healthz"
	configzURL = "https://127.0.0.1:10250/configz"
)

// Kubelet is the path of the real kubelet.
func (c *Cluster) Kubelet() string { return c.part("kubelet-" + c.kubelet) }

// KubeletConfigFile is the path of the node's own KubeletConfiguration, which --config names.
func (c *Cluster) KubeletConfigFile() string { return c.path("kubelet.yaml") }

// KubeletKubeconfig is the path of the kubelet's kubeconfig; it names pki/node.crt and pki/node.key.
func (c *Cluster) KubeletKubeconfig() string { return c.path(NodeName + ".kubeconfig") }

// KubeletArguments is the whole command line of the node's kubelet, its path first and the extra flags last.
func (c *Cluster) KubeletArguments(extra ...string) []string {
	words := []string{
		c.Kubelet(),
		"--config=" + c.KubeletConfigFile(),
		"--kubeconfig=" + c.KubeletKubeconfig(),
		"--hostname-override=" + NodeName,
		"--node-ip=" + NodeAddress, // found by itself only after 10 s
		"--root-dir=" + c.path("kubelet"),
		"--cert-dir=" + c.path("kubelet-pki"),
		"--v=2",
	}
	if c.kubeletMinor() < 27 { // the configuration has no field for it
		words = append(words, "--container-runtime=remote", "--container-runtime-endpoint="+c.runtimeEndpoint())
	}
	return append(words, extra...)
}

func (c *Cluster) runtimeEndpoint() string { return "unix://" + c.path("containerd.sock") }

// kubeletMinor is 36 for 1.36.3.
func (c *Cluster) kubeletMinor() int {
	_, rest, _ := strings.Cut(c.kubelet, ".")
	minor, _, _ := strings.Cut(rest, ".")
	number, err := strconv.Atoi(minor)
	if err != nil {
		return math.MaxInt // of what was built from a branch
	}
	return number
}

// KubeletConfig is what Up writes into KubeletConfigFile, YAML. A payload for this node is this text with other values and
// more fields: without containerRuntimeEndpoint, cgroupRoot, failCgroupV1 and failSwapOn no kubelet runs here. eventRecordQPS
// is 7 and maxPods 20, so that a configuration can be told from the defaults (50 and 110). oomScoreAdj is there only where
// the kubelet would sleep without it (OOMScore). An older kubelet's has only fields that it knows.
func (c *Cluster) KubeletConfig() string {
	text := strings.NewReplacer("FOLDER", c.Folder, "CGROUP", cgroupName(c.Name), "ENDPOINT", c.runtimeEndpoint(),
		"OOMSCORE", KubeletOOMScore().Lines()).Replace(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: "FOLDER/pki/ca.crt"}
authorization: {mode: AlwaysAllow}
tlsCertFile: "FOLDER/pki/kubelet-serving.crt"
tlsPrivateKeyFile: "FOLDER/pki/kubelet-serving.key"
containerRuntimeEndpoint: "ENDPOINT"
cgroupDriver: cgroupfs
cgroupRoot: /CGROUP
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
resolvConf: ""
podLogsDir: "FOLDER/pod-logs"
volumePluginDir: "FOLDER/volume-plugins"
nodeStatusUpdateFrequency: 2s
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi}
maxPods: 20
eventRecordQPS: 7
OOMSCORE`)
	for field, since := range map[string]int{"containerRuntimeEndpoint": 27, "podLogsDir": 30, "failCgroupV1": 31} {
		if c.kubeletMinor() < since {
			text = regexp.MustCompile(`(?m)^`+field+`: .*\n`).ReplaceAllString(text, "")
		}
	}
	return text
}

// KubeletHTTP is a client for the kubelet's ports, as admin: https://127.0.0.1:10250 and http://127.0.0.1:10248. No
// connection is kept.
func (c *Cluster) KubeletHTTP() (*http.Client, error) {
	config := c.AdminConfig()
	certificate, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		return nil, fmt.Errorf("making a client for the kubelet: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.authority.certificate)
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: c.Dial,
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots, MinVersion: tls.VersionTLS12,
			InsecureSkipVerify: c.join}, // the kubelet of a node that kubeadm made has signed its certificate itself
		DisableKeepAlives: true,
	}}, nil
}

// Healthz asks the kubelet's healthz; nil means that it answered ok.
func (c *Cluster) Healthz(ctx context.Context) error {
	client, err := c.KubeletHTTP()
	if err != nil {
		return err
	}
	_, err = request(ctx, client, http.MethodGet, healthzURL, nil)
	return err
}

// Configz asks the kubelet for the KubeletConfiguration it runs with, defaults and flags included. It needs no API server
// as long as the configuration keeps the authentication of KubeletConfig.
func (c *Cluster) Configz(ctx context.Context) (map[string]any, error) {
	client, err := c.KubeletHTTP()
	if err != nil {
		return nil, err
	}
	body, err := request(ctx, client, http.MethodGet, configzURL, nil)
	if err != nil {
		return nil, err
	}
	var answer struct {
		KubeletConfig map[string]any `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("reading %s: %w", configzURL, err)
	}
	return answer.KubeletConfig, nil
}
