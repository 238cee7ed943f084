//go:build linux

package metrics

import (
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// Metrics are those of one supervisor. The zero value is not usable; a nil *Metrics counts nothing. All methods may be called from any
// goroutine.
type Metrics struct {
	version string
	changed chan struct{} // capacity 1
	now     func() time.Duration

	mutex   sync.Mutex
	counts  Counts
	contact time.Time // of the newest answer
	shown   shown
	begun   map[string]time.Duration // phases under way
	until   time.Duration            // to when unhealthy time was counted
}

// shown is what is so now.
type shown struct {
	condition      core.Statement
	healthy        bool
	trial          bool
	healthyFor     time.Duration
	period         time.Duration
	shadowed       int
	pending, known bool
}

// New makes the metrics of a program, which go on from the counts of the one before it; now is a monotonic clock.
func New(version string, before Counts, now func() time.Duration) *Metrics {
	return &Metrics{version: version, changed: make(chan struct{}, 1), now: now, counts: before.filled(), begun: map[string]time.Duration{},
		until: now()}
}

// Counts returns a copy, for the next program.
func (m *Metrics) Counts() Counts {
	if m == nil {
		return Counts{}
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.pass()
	return m.counts.clone()
}

// Decided takes in one decision, and what the Node should show after it.
func (m *Metrics) Decided(before, after *core.State, event core.Event, step *core.Step) {
	if m == nil {
		return
	}
	statement, _ := core.Report(*after)
	fields, _ := after.ShadowedFields()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.pass()
	m.counts.decided(before, after, event, step)
	m.phases(event, step)
	m.shown = shown{condition: statement, known: after.Booted, healthy: after.Child.Alive && after.Child.Healthy, trial: after.OnTrial(),
		period: after.TrialPeriod, shadowed: len(fields), pending: after.LocalChangePending()}
	if m.shown.trial {
		m.shown.healthyFor = time.Duration(after.Trial.Healthy)
	}
	m.poke()
}

// pass counts the time until now.
func (m *Metrics) pass() {
	now := m.now()
	if !m.shown.healthy {
		m.counts.Unhealthy += (now - m.until).Seconds()
	}
	m.until = now
}

// phases follows what is under way.
func (m *Metrics) phases(event core.Event, step *core.Step) {
	switch e := event.(type) {
	case core.Proved, core.ParkEnded:
		m.end(phasePreflight)
	case core.ChildExited:
		m.end(phaseStop)
		delete(m.begun, phaseStart)
	case core.Started:
		if e.Err != nil {
			delete(m.begun, phaseStart)
		}
	case core.Healthy:
		m.end(phaseStart)
	}
	for _, ended := range step.Phases {
		if ended.Phase == core.PhaseDownload {
			m.counts.Changes[phaseDownload].observe(ended.Took)
		}
	}
	switch step.Do.(type) {
	case core.Prove, core.Park:
		m.begun[phasePreflight] = m.until
	case core.Stop:
		m.begun[phaseStop] = m.until
	case core.Start:
		m.begun[phaseStart] = m.until
	}
}

func (m *Metrics) end(phase string) {
	if began, is := m.begun[phase]; is {
		m.counts.Changes[phase].observe(m.until - began)
		delete(m.begun, phase)
	}
}

// Saying notes that there is something new to report on the Node.
func (m *Metrics) Saying() { m.report(false) }

// Said notes that the Node shows the report.
func (m *Metrics) Said() { m.report(true) }

func (m *Metrics) report(said bool) {
	if m == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.pass()
	if _, is := m.begun[phaseReport]; said {
		m.end(phaseReport)
		m.poke()
	} else if !is {
		m.begun[phaseReport] = m.until
	}
}

// Answered counts an answer of the API server; code 0 is none.
func (m *Metrics) Answered(code int, at time.Time) {
	if m == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	name := noAnswer
	if code != 0 {
		name, m.contact = strconv.Itoa(code), at
	}
	m.counts.answered(name, 1)
}

func (m *Metrics) poke() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// sourceLabels are upstream's (getConfigLabels and setNodeConfigMetric... of pkg/kubelet/metrics/metrics.go, Kubernetes 1.21).
func sourceLabels(source *corev1.NodeConfigSource) []label {
	labels := []label{{"node_config_source", "local"}, {"node_config_uid", ""}, {"node_config_resource_version", ""},
		{"node_config_kubelet_key", ""}}
	if source == nil || source.ConfigMap == nil {
		return labels
	}
	c := source.ConfigMap
	for i, value := range []string{"/api/v1/namespaces/" + c.Namespace + "/configmaps/" + c.Name, string(c.UID), c.ResourceVersion,
		c.KubeletConfigKey} {
		labels[i].value = value
	}
	return labels
}
