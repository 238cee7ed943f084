//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

var uniqueNames atomic.Int32

// uniqueName makes a name that no other test of this run has.
func uniqueName(name string) string {
	return name + "-" + strconv.Itoa(int(uniqueNames.Add(1)))
}

// A configMap is one that exists, or did.
type configMap struct {
	*corev1.ConfigMap
	node *node
}

// assignment names the configMap's key, as the annotation does.
func (c *configMap) assignment(key string) string { return c.Namespace + "/" + c.Name + "/" + key }

// putConfigMap creates a ConfigMap in kube-system by a name of its own and lets the node read it. It goes with the test.
func (n *node) putConfigMap(t *testing.T, name string, data map[string]string) *configMap {
	t.Helper()
	return n.createConfigMap(t, "kube-system", uniqueName(name), data)
}

// createConfigMap is the same with a name and namespace that are given.
func (n *node) createConfigMap(t *testing.T, namespace, name string, data map[string]string) *configMap {
	t.Helper()
	c := n.createUnreadable(t, namespace, name, data)
	n.allow(t, namespace, name)
	return c
}

// createUnreadable is the same without the node's right to read it.
func (n *node) createUnreadable(t *testing.T, namespace, name string, data map[string]string) *configMap {
	t.Helper()
	c := &configMap{node: n, ConfigMap: &corev1.ConfigMap{}}
	n.must(t, http.MethodPost, fmt.Sprintf(configFolder, namespace), object{"metadata": object{"name": name}, "data": data}, c.ConfigMap)
	t.Cleanup(func() { c.delete(t) })
	return c
}

func (c *configMap) path() string { return fmt.Sprintf(configFolder, c.Namespace) + "/" + c.Name }

// patch changes the ConfigMap by a merge patch; its fields are then the new ones.
func (c *configMap) patch(t *testing.T, change object) {
	t.Helper()
	changed := &corev1.ConfigMap{}
	c.node.must(t, http.MethodPatch, c.path(), change, changed)
	c.ConfigMap = changed
}

// set changes one key of the data.
func (c *configMap) set(t *testing.T, key, value string) {
	t.Helper()
	c.patch(t, object{"data": object{key: value}})
}

// delete deletes the ConfigMap; that it is gone is fine.
func (c *configMap) delete(t *testing.T) {
	t.Helper()
	c.node.remove(t, c.path())
}

// is tells whether a source of a status is this very version.
func (c *configMap) is(source *corev1.NodeConfigSource) bool {
	return source != nil && source.ConfigMap != nil && source.ConfigMap.Namespace == c.Namespace && source.ConfigMap.Name == c.Name &&
		source.ConfigMap.UID == c.UID && source.ConfigMap.ResourceVersion == c.ResourceVersion
}

// allow lets the node read one more ConfigMap, and waits until the API server knows it.
func (n *node) allow(t *testing.T, namespace, name string) {
	t.Helper()
	n.readable[namespace] = append(n.readable[namespace], name)
	n.grant(t, namespace, name, true)
}

// deny takes that right away.
func (n *node) deny(t *testing.T, namespace, name string) {
	t.Helper()
	n.readable[namespace] = slices.DeleteFunc(n.readable[namespace], func(s string) bool { return s == name })
	n.grant(t, namespace, name, false)
}

func (n *node) grant(t *testing.T, namespace, name string, want bool) {
	t.Helper()
	// A Role that names none would be one for all.
	if err := n.ReadConfigMapsRole(t.Context(), namespace, append([]string{"none"}, n.readable[namespace]...)...); err != nil {
		t.Fatal(err)
	}
	review := object{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": object{
		"user": "system:node:" + cluster.NodeName, "groups": []string{"system:nodes"},
		"resourceAttributes": object{"namespace": namespace, "name": name, "resource": "configmaps", "verb": "get"},
	}}
	await(t, fmt.Sprintf("the node's right to read %s/%s is %v", namespace, name, want), func() error {
		var answer struct{ Status struct{ Allowed bool } }
		_, err := n.request(http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review, &answer)
		if err == nil && answer.Status.Allowed != want {
			err = errors.New("the other way round")
		}
		return err
	})
}

// kubeletConfig is the node's own KubeletConfiguration with changes, YAML: a payload with which a kubelet runs here.
func (n *node) kubeletConfig(changes ...func(config object)) string {
	config := object{}
	if err := yaml.Unmarshal([]byte(n.KubeletConfig()), &config); err != nil {
		panic(err) // the cluster's text
	}
	for _, change := range changes {
		change(config)
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		panic(err) // made of what JSON has
	}
	return string(text)
}

// with sets a field, given by its dotted path; nil removes it.
func with(path string, value any) func(object) {
	return func(config object) {
		names := strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			inner, is := config[name].(object)
			if !is {
				inner = object{}
				config[name] = inner
			}
			config = inner
		}
		if name := names[len(names)-1]; value == nil {
			delete(config, name)
		} else {
			config[name] = value
		}
	}
}
