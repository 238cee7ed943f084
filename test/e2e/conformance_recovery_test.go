//go:build e2e && conformance

package e2e

import (
	"fmt"
	"testing"
)

// trialEnds waits for the promotion, which restarts nothing.
func (c *conformance) trialEnds(t *testing.T) {
	t.Helper()
	want := c.before
	want.restarts, want.event, want.lastKnownGood = 0, none, want.assigned
	c.step(t, want.assigned+" passes its trial", nothing, want)
}

// T2, recover to last-known-good ConfigMap.
func testRecoverToConfigMap(t *testing.T, begin func(*testing.T, trial) *conformance) {
	c := begin(t, short)
	good := c.create(t, uniqueName("good"), map[string]string{payloadKey: c.content("good")})
	bad := c.create(t, uniqueName("bad"), map[string]string{payloadKey: unparsable})
	c.know("good", "good", good, payloadKey)
	c.know("bad", "", bad, payloadKey)
	c.recoverFrom(t, to(good, payloadKey), to(bad, payloadKey))
}

// T3, recover to last-known-good ConfigMap.KubeletConfigKey: they differ in the key alone.
func testRecoverToKey(t *testing.T, begin func(*testing.T, trial) *conformance) {
	c := begin(t, short)
	config := c.create(t, uniqueName("two-keys"), map[string]string{payloadKey: c.content("good"), "bad": unparsable})
	c.know("good", "good", config, payloadKey)
	c.know("bad", "", config, "bad")
	c.recoverFrom(t, to(config, payloadKey), to(config, "bad"))
}

func (c *conformance) recoverFrom(t *testing.T, good, bad reference) {
	t.Helper()
	c.step(t, "good", c.assign(good), c.assigned("good", none))
	c.trialEnds(t)
	c.step(t, "good → bad", c.assign(bad), c.assigned("bad", "LoadError"))
	c.step(t, "bad → good", c.assign(good), c.assigned("good", none))
}

// T4, correctly handles changing a non-nil last-known-good to a new non-nil last-known-good.
func testNextLastKnownGood(t *testing.T, begin func(*testing.T, trial) *conformance) {
	c := begin(t, short)
	for _, name := range []string{"lkg-1", "lkg-2"} {
		config := c.create(t, uniqueName(name), map[string]string{payloadKey: c.content(name)})
		c.know(name, name, config, payloadKey)
		c.step(t, name, c.assign(to(config, payloadKey)), c.assigned(name, none))
		c.trialEnds(t)
	}
}

// T5, stress: a hundred updates, to and fro between two ConfigMaps.
func testStress(t *testing.T, begin func(*testing.T, trial) *conformance) {
	c := begin(t, endless)
	names := []string{"cm-1", "cm-2"}
	var references []reference
	for _, name := range names {
		config := c.create(t, uniqueName(name), map[string]string{payloadKey: c.content(name)})
		c.know(name, name, config, payloadKey)
		references = append(references, to(config, payloadKey))
	}
	c.step(t, names[0], c.assign(references[0]), c.assigned(names[0], none))
	for update := range 100 {
		next := (update + 1) % 2
		c.step(t, fmt.Sprintf("update %d of 100", update+1), c.assign(references[next]), c.assigned(names[next], none))
	}
}

// T7, recover to last-known-good version: the ConfigMap is edited in place.
func testRecoverToVersion(t *testing.T, begin func(*testing.T, trial) *conformance) {
	c := begin(t, short)
	config := c.create(t, uniqueName("edited"), map[string]string{payloadKey: c.content("good")})
	c.know("good-1", "good", config, payloadKey)
	c.step(t, "good", c.assign(to(config, payloadKey)), c.assigned("good-1", none))
	c.trialEnds(t)
	config.set(t, payloadKey, unparsable)
	c.know("bad-2", "", config, payloadKey)
	c.step(t, "good → bad", nothing, c.assigned("bad-2", "LoadError"))
	config.set(t, payloadKey, c.content("good"))
	c.know("good-3", "good", config, payloadKey)
	c.step(t, "bad → good", nothing, c.assigned("good-3", none))
}

// T9, report error when the ConfigMap is absent, and recover when it is back.
func testAbsent(t *testing.T, begin func(*testing.T, trial) *conformance) {
	c := begin(t, endless)
	data := map[string]string{payloadKey: c.content("correct")}
	config := c.create(t, uniqueName("absent"), data)
	c.know("correct", "correct", config, payloadKey)
	c.step(t, "correct", c.assign(to(config, payloadKey)), c.assigned("correct", none))
	absent := c.before
	absent.error, absent.restarts, absent.event = "DownloadError", 0, none
	c.step(t, "correct → absent", func() error {
		config.delete(t)
		return nil
	}, absent)
	config = c.recreate(t, config, data)
	c.know("correct again", "correct", config, payloadKey)
	c.step(t, "absent → correct", nothing, c.assigned("correct again", none))
}
