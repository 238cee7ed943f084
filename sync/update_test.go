package sync

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
)

func addKeys(c *corev1.ConfigMap, count int) {
	for i := range count {
		c.Data[strconv.Itoa(i)] = ""
	}
}

func TestResolve(t *testing.T) {
	wanted := &corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "a", KubeletConfigKey: "kubelet"}
	found := func(change func(*corev1.ConfigMap)) *corev1.ConfigMap {
		c := configMap("a", "ua", "one")
		c.ResourceVersion = "7"
		c.BinaryData = map[string][]byte{"ca.crt": {0xff, 0}}
		change(c)
		return c
	}
	pin := *wanted
	pin.UID = "pinned"
	for name, c := range map[string]struct {
		wanted *corev1.ConfigMapNodeConfigSource
		found  *corev1.ConfigMap
		err    string
		words  string
	}{
		"found":               {wanted, found(func(*corev1.ConfigMap) {}), "", ""},
		"no data at all":      {wanted, found(func(c *corev1.ConfigMap) { c.Data, c.BinaryData = nil, nil }), "", ""},
		"empty data":          {wanted, found(func(c *corev1.ConfigMap) { c.Data, c.BinaryData = map[string]string{}, nil }), "", ""},
		"missing":             {wanted, nil, downloadError, "does not exist"},
		"other uid":           {&pin, found(func(*corev1.ConfigMap) {}), downloadError, `its uid is "ua", the assignment asks for "pinned"; assign kube-system/a/kubelet@ua`},
		"no uid":              {wanted, found(func(c *corev1.ConfigMap) { c.UID = "" }), internalError, "without uid"},
		"no resourceVersion":  {wanted, found(func(c *corev1.ConfigMap) { c.ResourceVersion = "" }), internalError, "without uid or resourceVersion"},
		"just small enough":   {wanted, found(func(c *corev1.ConfigMap) { c.Data["x"] = strings.Repeat("x", 95) }), "", ""},
		"too large":           {wanted, found(func(c *corev1.ConfigMap) { c.Data["x"] = strings.Repeat("x", 96) }), downloadError, "holds 101 bytes, at most 100"},
		"too many keys":       {wanted, found(func(c *corev1.ConfigMap) { addKeys(c, 1023) }), downloadError, "has 1025 keys, at most 1024"},
		"just few enough":     {wanted, found(func(c *corev1.ConfigMap) { addKeys(c, 1022) }), "", ""},
		"too large in binary": {wanted, found(func(c *corev1.ConfigMap) { c.BinaryData["x"] = make([]byte, 96) }), downloadError, "holds 101 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			source, payload, problem := resolve(c.wanted, c.found, 100)
			if c.err == "" {
				if problem != nil || source.UID != "ua" || source.ResourceVersion != "7" || source.Name != "a" || source.KubeletConfigKey != "kubelet" {
					t.Errorf("got %+v, %+v", source, problem)
				}
				want := maps.Clone(c.found.Data)
				for key := range c.found.BinaryData {
					want[key] = "\xff\x00"
				}
				if diff := cmp.Diff(want, payload, cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
				return
			}
			if source != nil || problem == nil || problem.Malformed || problem.Error != c.err || !strings.Contains(problem.Words, c.words) {
				t.Errorf("got %+v, %+v", source, problem)
			}
		})
	}
	if wanted.UID != "" {
		t.Error("the assignment itself was changed")
	}
}

// Upstream's table of equal sources: what is the same is not told again.
func TestSameSource(t *testing.T) {
	source := func(change func(*corev1.ConfigMapNodeConfigSource)) *corev1.ConfigMapNodeConfigSource {
		s := &corev1.ConfigMapNodeConfigSource{Namespace: "ns", Name: "name", UID: "uid", ResourceVersion: "1", KubeletConfigKey: "kubelet"}
		change(s)
		return s
	}
	one := func() *corev1.ConfigMapNodeConfigSource { return source(func(*corev1.ConfigMapNodeConfigSource) {}) }
	for name, c := range map[string]struct {
		a, b *corev1.ConfigMapNodeConfigSource
		same bool
	}{
		"both nil":                {nil, nil, true},
		"one nil":                 {one(), nil, false},
		"the other nil":           {nil, one(), false},
		"equal":                   {one(), one(), true},
		"another namespace":       {one(), source(func(s *corev1.ConfigMapNodeConfigSource) { s.Namespace = "other" }), false},
		"another name":            {one(), source(func(s *corev1.ConfigMapNodeConfigSource) { s.Name = "other" }), false},
		"another uid":             {one(), source(func(s *corev1.ConfigMapNodeConfigSource) { s.UID = "other" }), false},
		"another resourceVersion": {one(), source(func(s *corev1.ConfigMapNodeConfigSource) { s.ResourceVersion = "2" }), false},
		"another key":             {one(), source(func(s *corev1.ConfigMapNodeConfigSource) { s.KubeletConfigKey = "other" }), false},
	} {
		if got := (Update{Source: c.a}).same(Update{Source: c.b}); got != c.same {
			t.Errorf("%s: same is %v", name, got)
		}
	}
}
