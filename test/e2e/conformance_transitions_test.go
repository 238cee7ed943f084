//go:build e2e && conformance

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
)

const (
	payloadKey   = "kubelet"
	sourcePath   = "spec.configSource.configMap."
	firstPayload = 10 // among configStates
	unparsable   = "{0xdeadbeef}"
)

// A configState is one of upstream's states between which a node goes.
type configState struct {
	name      string
	reference reference
	refused   string // upstream's words for what the API server refuses
	version   string // that is then assigned; "" where nothing new is
	error     string
	unlike    string // the known difference that is in the state itself
}

// configStates are those of T1, in upstream's order. The last three get a ConfigMap each.
var configStates = []configState{
	{name: "nil", version: none, error: none},
	{name: "all nil subfields", reference: reference{Empty: true}, refused: "exactly one reference subfield must be non-nil"},
	{name: "missing namespace", reference: reference{Name: "bar", Key: payloadKey}, refused: sourcePath + "namespace: Required value: namespace must be set"},
	{name: "missing name", reference: reference{Namespace: "kube-system", Key: payloadKey}, refused: sourcePath + "name: Required value: name must be set"},
	{name: "missing kubeletConfigKey", reference: reference{Namespace: "kube-system", Name: "bar"}, refused: sourcePath + "kubeletConfigKey: Required value: kubeletConfigKey must be set"},
	{name: "uid set", reference: reference{Namespace: "kube-system", Name: "bar", Key: payloadKey, UID: "foo"}, refused: sourcePath + "uid: Forbidden: uid must not be set in spec"},
	{name: "resourceVersion set", reference: reference{Namespace: "kube-system", Name: "bar", Key: payloadKey, ResourceVersion: "1"}, refused: sourcePath + "resourceVersion: Forbidden: resourceVersion must not be set in spec"},
	{name: "invalid namespace", reference: reference{Namespace: "../baz", Name: "bar", Key: payloadKey}, refused: sourcePath + "namespace: Invalid value"},
	{name: "invalid name", reference: reference{Namespace: "kube-system", Name: "../bar", Key: payloadKey}, refused: sourcePath + "name: Invalid value"},
	{name: "invalid kubeletConfigKey", reference: reference{Namespace: "kube-system", Name: "bar", Key: "../qux"}, refused: sourcePath + "kubeletConfigKey: Invalid value"},
	{name: "correct", version: "correct", error: none},
	{name: "fail-parse", version: "fail-parse", error: "LoadError"},
	{name: "fail-validate", version: "fail-validate", error: "ValidateError"},
}

// payload is upstream's of this name, and the name of its content where a kubelet runs with it.
func (c *conformance) payload(state string) (text, content string) {
	switch state {
	case "correct":
		return c.content("correct"), "correct"
	case "fail-parse":
		return unparsable, ""
	case "fail-validate":
		return c.kubeletConfig(with("kubeAPIQPS", -1)), ""
	}
	panic("no such payload: " + state)
}

// withConfigMaps are the states with the ConfigMaps that they name.
func (c *conformance) withConfigMaps(t *testing.T) []configState {
	t.Helper()
	states := slices.Clone(configStates)
	for i := firstPayload; i < len(states); i++ {
		text, content := c.payload(states[i].name)
		config := c.create(t, uniqueName(states[i].name), map[string]string{payloadKey: text})
		c.know(states[i].version, content, config, payloadKey)
		states[i].reference = to(config, payloadKey)
	}
	return states
}

// T1, update Node.Spec.ConfigSource: state transitions. All pairs, in both directions; each first state on a node of its own.
func testTransitions(t *testing.T, begin func(*testing.T, trial) *conformance) {
	for i, first := range configStates {
		t.Run("from "+first.name, func(t *testing.T) {
			c := begin(t, endless)
			states := c.withConfigMaps(t)
			first, unable := c.carrier.express(states[i])
			if unable != "" {
				c.table.add(t, &conformanceRow{what: c.group + " " + first.name, carrier: c.carrier.name, expected: unable, skipped: true})
				return
			}
			c.move(t, "to "+first.name, first)
			for _, next := range states[i+1:] {
				if next, unable := c.carrier.express(next); unable == "" {
					c.move(t, first.name+" → "+next.name, next)
					c.move(t, next.name+" → "+first.name, first)
				}
			}
		})
	}
}

func (c *conformance) move(t *testing.T, name string, next configState) {
	t.Helper()
	want, unlike := c.before, next.unlike
	want.restarts, want.event = 0, none
	switch {
	case next.version != "":
		want = c.assigned(next.version, next.error)
	case next.refused == "":
		want.error = next.error
	case c.carrier.byAssignment:
		want.refused = next.refused // by the API server, so nothing reaches the node
	default:
		want.error, unlike = "sync: "+next.refused, refusedOnTheNode
	}
	c.stepUnlike(t, name, c.assign(next.reference), want, cmp.Or(unlike, c.unlike(want)))
}

// T6, update ConfigMap in-place: state transitions. The resource version follows each edit.
func testEditTransitions(t *testing.T, begin func(*testing.T, trial) *conformance) {
	testPayloads(t, begin, func(_ *conformance, t *testing.T, config *configMap, data map[string]string) *configMap {
		t.Helper()
		config.set(t, payloadKey, data[payloadKey])
		return config
	})
}

// T8, delete and recreate ConfigMap: state transitions. The uid follows each time.
func testRecreateTransitions(t *testing.T, begin func(*testing.T, trial) *conformance) {
	testPayloads(t, begin, (*conformance).recreate)
}

// recreate deletes a ConfigMap and makes another of its name.
func (c *conformance) recreate(t *testing.T, config *configMap, data map[string]string) *configMap {
	t.Helper()
	config.delete(t)
	return c.createUnreadable(t, config.Namespace, config.Name, data) // the right to read it is by name
}

// testPayloads goes between upstream's three payloads, all pairs in both directions, with the assignment as it is.
func testPayloads(t *testing.T, begin func(*testing.T, trial) *conformance, change func(*conformance, *testing.T, *configMap, map[string]string) *configMap) {
	states := configStates[firstPayload:]
	for i, first := range states {
		t.Run("from "+first.name, func(t *testing.T) {
			c := begin(t, endless)
			text, content := c.payload(first.name)
			config := c.create(t, uniqueName("changing"), map[string]string{payloadKey: text})
			c.know(first.name, content, config, payloadKey)
			c.step(t, "to "+first.name, c.assign(to(config, payloadKey)), c.assigned(first.name, first.error))
			versions := 1
			move := func(from, next configState) {
				t.Helper()
				text, content := c.payload(next.name)
				config = change(c, t, config, map[string]string{payloadKey: text})
				versions++
				version := fmt.Sprintf("%s@%d", next.name, versions)
				c.know(version, content, config, payloadKey)
				c.step(t, from.name+" → "+next.name, nothing, c.assigned(version, next.error))
			}
			for _, next := range states[i+1:] {
				move(first, next)
				move(next, first)
			}
		})
	}
}

// nothing is done by a step whose cause came before it, or comes by itself.
func nothing() error { return nil }
