//go:build linux

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// AdminConfig is for REST clients that may do everything (group system:masters), from outside the namespace.
func (c *Cluster) AdminConfig() *rest.Config {
	config, err := c.fileConfig("admin")
	if err != nil { // only after Down: a client made of it answers with the reason
		return &rest.Config{Host: "https://" + apiServerAddress, Transport: failingTransport{err}}
	}
	return config
}

type failingTransport struct{ err error }

func (f failingTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

func (c *Cluster) fileConfig(name string) (*rest.Config, error) {
	certificate, err := os.ReadFile(c.path("pki", name+".crt"))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(c.path("pki", name+".key"))
	if err != nil {
		return nil, err
	}
	return c.config(pair{certificate: certificate, key: key}), nil
}

// IdentityConfig is for REST clients of any user and groups, by a new certificate: its CertData and KeyData may also be
// written over pki/node.crt and pki/node.key, as a rotation does.
func (c *Cluster) IdentityConfig(user string, groups ...string) (*rest.Config, error) {
	issued, err := c.authority.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return c.config(issued), nil
}

// WriteKubeconfig writes a kubeconfig for a server, with an identity of IdentityConfig, whose Host is the API server.
func WriteKubeconfig(path, server string, identity *rest.Config) error {
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: identity.CAData}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: identity.CertData, ClientKeyData: identity.KeyData}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	return clientcmd.WriteToFile(*c, path)
}

func (c *Cluster) config(identity pair) *rest.Config {
	return &rest.Config{
		Host: "https://" + apiServerAddress,
		Dial: c.Dial,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.authority.certificatePEM, CertData: identity.certificate, KeyData: identity.key,
		},
		QPS: -1, // no limit
	}
}

// KubectlArguments is the beginning of a kubectl command line as admin, for a person or a demo to show.
func (c *Cluster) KubectlArguments() []string {
	return c.Command(c.part("kubectl-"+newestKubernetes), "--kubeconfig="+c.path("admin.kubeconfig"), "--cache-dir="+c.path("kubectl-cache")).Args
}

// Kubectl runs kubectl as admin and returns its stdout; the error has its stderr.
func (c *Cluster) Kubectl(ctx context.Context, arguments ...string) (string, error) {
	words := append(c.KubectlArguments(), arguments...)
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// ReadConfigMapsRole lets the nodes (group system:nodes) get, list and watch these ConfigMaps of the namespace, and no others
// of it: the Role and RoleBinding kubelet-config replace those of an earlier call. The node authorizer alone grants none.
func (c *Cluster) ReadConfigMapsRole(ctx context.Context, namespace string, names ...string) error {
	const name = "kubelet-config"
	metadata := map[string]any{"name": name, "namespace": namespace}
	role := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
		"rules": []any{map[string]any{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "resourceNames": names, "verbs": []string{"get", "list", "watch"}}},
	}
	binding := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}},
	}
	folder := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace
	return errors.Join(c.put(ctx, folder+"/roles", name, role), c.put(ctx, folder+"/rolebindings", name, binding))
}

// makeServiceAccounts does what a controller manager would: without them no pod can be made. Their tokens are not mounted,
// for that needs a ConfigMap that only a controller manager writes.
func (c *Cluster) makeServiceAccounts(ctx context.Context) error {
	for _, namespace := range []string{"default", "kube-system"} {
		account := map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default"}, "automountServiceAccountToken": false}
		// The namespaces come a moment after the API server is ready.
		err := c.waitFor(ctx, apiServer, func(ctx context.Context) error {
			return c.put(ctx, "/api/v1/namespaces/"+namespace+"/serviceaccounts", "default", account)
		})
		if err != nil {
			return fmt.Errorf("making the ServiceAccount of namespace %s: %w", namespace, err)
		}
	}
	return nil
}

// put creates an object, or replaces it.
func (c *Cluster) put(ctx context.Context, collection, name string, object any) error {
	client, err := rest.HTTPClientFor(c.AdminConfig())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	url := "https://" + apiServerAddress + collection
	_, err = request(ctx, client, http.MethodPost, url, bytes.NewReader(body))
	var status *statusError
	if errors.As(err, &status) && status.code == http.StatusConflict {
		_, err = request(ctx, client, http.MethodPut, url+"/"+name, bytes.NewReader(body))
	}
	return err
}

// RefusedBy names who refused a request, in the words of docs/why/security.md; yes is nobody, and what is no refusal is named as it is.
func RefusedBy(err error) string {
	switch {
	case err == nil:
		return "yes"
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'kubelet-supervisor-"):
		return "policy"
	case strings.Contains(err.Error(), "is not allowed to modify "), strings.Contains(err.Error(), "with spec.nodeName set to itself"),
		strings.Contains(err.Error(), "node requested token not bound to a pod"):
		return "Node"
	case strings.Contains(err.Error(), " cannot "):
		return "RBAC"
	}
	return err.Error()
}
