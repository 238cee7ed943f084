//go:build linux

package metrics

import (
	"maps"
	"slices"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// ours begins all names that are not upstream's.
const ours = "kubelet_supervisor_"

// Text is all of it, in the exposition format.
func (m *Metrics) Text() []byte {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.pass()
	var p page
	p.family(ours+"build_info", gauge, "The version of the supervisor's program. Always 1.")
	p.sample(1, label{"version", m.version})
	if m.shown.known {
		m.showNow(&p)
	}
	m.showKubelet(&p)
	m.showChanges(&p)
	m.showContact(&p)
	return p.Bytes()
}

// showNow has upstream's four under their own names first.
func (m *Metrics) showNow(p *page) {
	s := &m.shown
	c := &s.condition.Config
	p.family("kubelet_node_config_assigned", gauge, "What the Node assigns. Always 1.")
	p.sample(1, sourceLabels(c.Assigned)...)
	p.family("kubelet_node_config_active", gauge, "What the kubelet runs with. Always 1.")
	p.sample(1, sourceLabels(c.Active)...)
	p.family("kubelet_node_config_last_known_good", gauge, "What the kubelet falls back to. Always 1.")
	p.sample(1, sourceLabels(c.LastKnownGood)...)
	p.family("kubelet_node_config_error", gauge, "1 while something is wrong with the configuration.")
	p.sample(truth(c.Error != ""))

	p.family(ours+"condition", gauge, "The Node condition KubeletConfigOk, as it should be. Always 1.")
	p.sample(1, label{"status", string(s.condition.Status)}, label{"reason", s.condition.Reason})
	p.family(ours+"held", gauge, "1 while a change waits because it would kill running pods.")
	p.sample(truth(s.condition.Reason == nodev1.ReasonWouldDisrupt))
	p.family(ours+"shadowed_fields", gauge, "Fields of the running configuration that flags or drop-in files override.")
	p.sample(float64(s.shadowed))
	p.family(ours+"local_change_pending", gauge, "1 while the node's own files have changed and the kubelet was not restarted for it.")
	p.sample(truth(s.pending))
	required := 0.0
	if s.trial {
		required = s.period.Seconds()
	}
	p.family(ours+"trial_healthy_seconds", gauge, "Healthy time of the configuration that is on trial; 0 without one.")
	p.sample(s.healthyFor.Seconds())
	p.family(ours+"trial_required_seconds", gauge, "Healthy time that the trial asks for; 0 without one.")
	p.sample(required)
}

func (m *Metrics) showKubelet(p *page) {
	c := &m.counts
	p.family(ours+"kubelet_healthy", gauge, "1 while the kubelet is healthy.")
	p.sample(truth(m.shown.healthy))
	p.family(ours+"kubelet_unhealthy_seconds_total", counter, "Time in which no healthy kubelet ran.")
	p.sample(c.Unhealthy)
	p.family(ours+"kubelet_starts_total", counter, "Starts of the kubelet: the supervisor's first (begin), after one that it stopped "+
		"(change), after one that ended without a request (exit).")
	p.each("why", c.Starts)
	p.family(ours+"kubelet_exits_total", counter, "Ends of the kubelet; asked: the supervisor stopped it.")
	p.sample(float64(c.Asked), label{"asked", "true"}, label{"cause", "stopped"})
	for _, cause := range slices.Sorted(maps.Keys(c.Exits)) {
		p.sample(float64(c.Exits[cause]), label{"asked", "false"}, label{"cause", cause})
	}
}

func (m *Metrics) showChanges(p *page) {
	c := &m.counts
	p.family(ours+"preflights_total", counter, "Times that the kubelet was asked about a configuration before it was restarted, by what it "+
		"said.")
	p.each("outcome", c.Preflights)
	p.family(ours+"rollbacks_total", counter, "Trials that failed, by cause.")
	p.each("cause", c.Rollbacks)
	p.family(ours+"rejections_total", counter, "Configurations that were rejected because the fallback ran well.")
	p.sample(float64(c.Rejections))
	p.family(ours+"promotions_total", counter, "Configurations that passed their trial.")
	p.sample(float64(c.Promotions))
	p.family(ours+"pods_lost_total", counter, "Pods that ran before a restart for a change and that the kubelet has rejected after it, by "+
		"its reason.")
	p.each("reason", c.LostFor)
	p.family(ours+"state_files_set_aside_total", counter, "State files of the kubelet that were set aside for a change.")
	p.sample(float64(c.Aside))
	p.family(ours+"change_duration_seconds", histogram, "How long the phases of changes took.")
	for _, phase := range slices.Sorted(maps.Keys(c.Changes)) {
		p.bars(*c.Changes[phase], label{"phase", phase})
	}
}

func (m *Metrics) showContact(p *page) {
	p.family(ours+"api_requests_total", counter, "Requests of the supervisor to the API server, by the code of the answer; none: there was "+
		"no answer.")
	p.each("code", m.counts.Requests)
	if !m.contact.IsZero() {
		p.family(ours+"last_contact_timestamp_seconds", gauge, "When the API server last answered the supervisor.")
		p.sample(float64(m.contact.UnixMilli()) / 1000)
	}
}

func (p *page) each(name string, values map[string]uint64) {
	for _, value := range slices.Sorted(maps.Keys(values)) {
		p.sample(float64(values[value]), label{name, value})
	}
}
