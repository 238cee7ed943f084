//go:build e2e && conformance

package e2e

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestConformance is upstream's own end-to-end table (test/e2e_node/dynamic_kubelet_config_test.go of Kubernetes 1.11 to 1.23),
// on both carriers; docs/evidence/conformance.md tells how to read it. Each step checks what upstream checked: the whole status, the four
// metrics with all of their labels, the whole of configz and the message of event KubeletConfigChanged; and how many kubelets were started.
func TestConformance(t *testing.T) {
	table := &conformanceTable{}
	t.Cleanup(func() { fmt.Print("\n", table) })
	for _, carrier := range carriers {
		t.Run(carrier.name, func(t *testing.T) {
			for _, group := range []struct {
				name string
				run  func(t *testing.T, begin func(*testing.T, trial) *conformance)
			}{
				{"T1", testTransitions},
				{"T2", testRecoverToConfigMap},
				{"T3", testRecoverToKey},
				{"T4", testNextLastKnownGood},
				{"T5", testStress},
				{"T6", testEditTransitions},
				{"T7", testRecoverToVersion},
				{"T8", testRecreateTransitions},
				{"T9", testAbsent},
			} {
				t.Run(group.name, func(t *testing.T) {
					group.run(t, func(t *testing.T, trial trial) *conformance {
						return beginConformance(t, table, carrier, group.name, trial)
					})
				})
			}
		})
	}
}

// A trial is a --trial-period. Upstream waited twelve minutes where a trial was to end, and was quick where it was not.
type trial string

const (
	endless trial = "1h"
	short   trial = "20s"
)

// A shown is what upstream's checks read, and the restarts, with names in place of uids and resource versions.
type shown struct {
	refused                         string // the API server's words
	assigned, active, lastKnownGood string // versions
	error                           string
	runs                            string // the content that configz shows
	restarts                        int    // since the step before
	event                           string // the content or version that the newest event of this step names
	more                            string // what else is to be seen and should not
}

const none = "-"

// String leaves out what is not there.
func (s shown) String() string {
	var text strings.Builder
	for _, part := range []struct{ name, value string }{
		{"assigned", s.assigned}, {"active", s.active}, {"lkg", s.lastKnownGood}, {"runs", s.runs}, {"restarts", strconv.Itoa(s.restarts)},
		{"event", s.event}, {"error", s.error}, {"refused", s.refused},
	} {
		if part.value != none && part.value != "" && part.value != "0" {
			_, _ = fmt.Fprintf(&text, "%s=%s ", part.name, strings.Replace(part.value, sourcePath, "…", 1))
		}
	}
	return strings.TrimSpace(text.String()) + s.more
}

// local is a node with nothing assigned.
var local = shown{assigned: none, active: none, lastKnownGood: none, error: none, runs: "local", event: none}

// A conformance is a supervised node on which steps are made.
type conformance struct {
	*node
	supervisor *supervised
	metrics    string // the file
	carrier    carrier
	table      *conformanceTable
	group      string

	reference reference         // the one that is set
	before    shown             // after the last step
	baseline  object            // what configz says locally
	versions  map[string]string // by what the status says, their names
	contents  map[string]string // by a version's name, the name of its content
	values    map[string]int    // by a content's name, its eventRecordQPS
	log       *startLog
	starts    int // of kubelets, before this step
	events    int // KubeletConfigChanged, before this step
}

func beginConformance(t *testing.T, table *conformanceTable, carrier carrier, group string, trial trial) *conformance {
	t.Helper()
	n := nodeOf(t, carrier.apiServer)
	c := &conformance{node: n, carrier: carrier, table: table, group: group, before: local,
		versions: map[string]string{}, contents: map[string]string{none: "local"}, values: map[string]int{}}
	flag, metrics := metricsFlag(t)
	c.supervisor = n.startedLocal(t, options{Flags: []string{"--trial-period=" + string(trial), flag}})
	c.metrics = metrics
	c.baseline = c.supervisor.configz(t)
	c.log = &startLog{file: c.supervisor.logFile()}
	c.starts = c.supervisor.starts(t)
	return c
}

// content is a payload with which the kubelet runs, told by its eventRecordQPS.
func (c *conformance) content(name string) string {
	if c.values[name] == 0 {
		c.values[name] = 100 + len(c.values)
	}
	return c.kubeletConfig(with("eventRecordQPS", c.values[name]))
}

// create makes a ConfigMap that the node may read, by what grants that with this carrier.
func (c *conformance) create(t *testing.T, name string, data map[string]string) *configMap {
	t.Helper()
	if c.carrier.byAssignment {
		return c.createUnreadable(t, "kube-system", name, data)
	}
	return c.createConfigMap(t, "kube-system", name, data)
}

// know names a key of this version of a ConfigMap and its content; what the kubelet refuses has none.
func (c *conformance) know(version, content string, config *configMap, key string) {
	c.versions[sourceText(config.source(key))] = version
	c.contents[version] = content
}

func sourceText(source *corev1.NodeConfigSource) string {
	if source == nil || source.ConfigMap == nil {
		return none
	}
	s := source.ConfigMap
	return fmt.Sprintf("/api/v1/namespaces/%s/configmaps/%s, UID: %s, ResourceVersion: %s, KubeletConfigKey: %s", s.Namespace, s.Name, s.UID, s.ResourceVersion, s.KubeletConfigKey)
}

// named is a version by its name, or what the status says where it is none of ours.
func (c *conformance) named(source *corev1.NodeConfigSource) string {
	text := sourceText(source)
	if name, is := c.versions[text]; is {
		return name
	}
	return text
}

// assigned is what a newly assigned version is to lead to, failure being what keeps it from running, or "-".
func (c *conformance) assigned(version, failure string) shown {
	next := shown{assigned: version, active: version, lastKnownGood: c.before.lastKnownGood, error: failure, event: none}
	switch {
	case version == none:
		next.lastKnownGood = none
	case failure != none:
		next.active = next.lastKnownGood
	case next.lastKnownGood != none && c.contents[version] == c.contents[next.lastKnownGood]:
		next.lastKnownGood = version
	}
	if next.runs = c.contents[next.active]; next.runs != c.before.runs {
		next.restarts, next.event = 1, next.active
		if next.active == none {
			next.event = "local"
		}
	}
	return next
}

// unlike names the known difference from upstream, which restarts for every other source, by an event that names it.
func (c *conformance) unlike(next shown) string {
	upstream := next.assigned
	if upstream == none {
		upstream = "local"
	}
	switch {
	case next.refused != "" || next.assigned == c.before.assigned || next.event == upstream:
		return ""
	case next.restarts == 1:
		return eventNamesWhatStarts
	case c.contents[next.assigned] != "" && (c.before.error == none || c.before.error == "DownloadError"):
		return equalContent
	}
	return refusedWithoutRestart
}

// assign writes an assignment.
func (c *conformance) assign(r reference) func() error {
	return func() error {
		err := c.carrier.set(c.node, r)
		if err == nil {
			c.reference = r
		}
		return err
	}
}

// to refers to a key of a ConfigMap.
func to(config *configMap, key string) reference {
	return reference{Namespace: config.Namespace, Name: config.Name, Key: key}
}

// step does something and expects what is then to be seen, within two minutes (upstream: one, without neighbours).
func (c *conformance) step(t *testing.T, name string, do func() error, want shown) {
	t.Helper()
	c.stepUnlike(t, name, do, want, c.unlike(want))
}

// stepUnlike is the same for a step that shows this known difference ("": none).
func (c *conformance) stepUnlike(t *testing.T, name string, do func() error, want shown, unlike string) {
	t.Helper()
	row := &conformanceRow{what: c.group + " " + name, carrier: c.carrier.name, expected: want.String(), seen: "nothing yet", unlike: unlike}
	defer c.table.add(t, row) // also where the step is the test's last
	seen := shown{refused: "nothing was done"}
	defer func() { row.seen = seen.String() }()
	refusal := ""
	if err := do(); errors.As(err, new(refused)) {
		refusal = wanted(err.Error(), want.refused)
	} else if err != nil {
		t.Fatal(err)
	}
	await(t, name, func() error {
		seen = c.look(t, want)
		if seen.refused = refusal; seen != want {
			return errors.New(seen.String())
		}
		return nil
	})
	c.before, c.before.refused = want, ""
	c.starts += want.restarts
	c.events += want.restarts
}
