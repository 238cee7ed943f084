package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// natures are what people choose from.
var natures = []nature{good, good, good, good, refused, dying, unready, slow}

func (s *sim) makePool(name string) {
	s.api.version++
	s.api.pools[name] = newPool(name, func(p *v1alpha1.KubeletPool) {
		p.Generation = int64(s.api.version) * 1000
		p.Spec.Layers = s.someLayers()
		r := &p.Spec.Rollout
		r.MaxUnavailable = amountOf(s.maxUnavailable[s.random.IntN(len(s.maxUnavailable))])
		r.Waves = [][]v1alpha1.Wave{nil, wavesOf("1", "100%"), wavesOf("2", "5", "50%", "100%"), wavesOf("100%")}[s.random.IntN(4)]
		if s.random.IntN(3) == 0 && len(r.Waves) > 1 {
			r.Waves[0].Soak = durationOf(2 * time.Minute)
		}
		r.Unready.Tolerate = amountOf([]string{"0", "1%", "10%", "1"}[s.random.IntN(4)])
		r.ProgressDeadline = durationOf([]time.Duration{5 * time.Minute, time.Hour}[s.random.IntN(2)])
		s.restrain(r)
		if s.random.IntN(8) == 0 {
			p.Spec.Adoption = v1alpha1.AdoptNever
		}
		if s.random.IntN(3) == 0 {
			p.Spec.JoinTaint = "join"
		}
	})
}

// someLayers are those of one of three contents, some of them in a ConfigMap, some with a layer for a few nodes.
func (s *sim) someLayers() []v1alpha1.Layer {
	text := fmt.Sprintf(`{"maxPods":%d,"logging":{"format":"%s"}}`, 100+s.random.IntN(3), natures[s.random.IntN(len(natures))])
	layers := []v1alpha1.Layer{inline("fleet", text)}
	if s.random.IntN(3) == 0 {
		layers[0] = v1alpha1.Layer{Name: "fleet", ConfigMap: &v1alpha1.ConfigMapKey{Name: "fleet"}}
		s.setLayer(text)
	}
	if s.random.IntN(2) == 0 {
		layers = append(layers, gpuLayer(fmt.Sprintf(`{"maxPods":%d}`, 60+s.random.IntN(2))))
	}
	return layers
}

func (s *sim) setLayer(text string) {
	s.api.version++
	s.api.layers = maps.Clone(s.api.layers)
	s.api.layers[Ref{"fleet", "kubelet"}] = ReadLayer(map[string]string{"kubelet": text}, "kubelet", strconv.Itoa(s.api.version))
}

// happens is what becomes of a node, by fate or by a person.
func (s *sim) happens(m *machine, kind uint8) {
	switch kind {
	case 48:
		m.reboot(s.now)
	case 49:
		s.vanishes(m)
	case 50:
		m.Cordoned, m.Draining = !m.Cordoned && !m.Draining, false // to uncordon is to uncordon, whoever has cordoned
		m.touched, m.dirty = true, true
	case 51:
		m.touched = true
		s.api.relabel(m, RolloutLabel, []string{"hold", ""}[s.random.IntN(2)])
	case 52:
		m.touched, m.dirty = true, true
		m.Source = []string{"", nodev1.Local, "kube-system/own/kubelet"}[s.random.IntN(3)]
		if s.random.IntN(2) == 0 {
			m.Mark, m.Retry = Mark{}, Retry{}
		}
	case 53:
		m.touched = true
		s.api.relabel(m, "gpu", []string{"true", ""}[s.random.IntN(2)])
		if s.random.IntN(4) == 0 {
			s.api.relabel(m, "zone", []string{"a", "b", ""}[s.random.IntN(3)])
		}
	case 54:
		m.touched = true
		s.api.relabel(m, "pool", []string{"a", "b", "none"}[s.random.IntN(3)])
		s.api.relabel(m, PoolLabel, []string{"none", "", ""}[s.random.IntN(3)])
	case 55:
		s.oddity(m)
	case 56:
		s.addMachine(func(m *machine) {
			m.Created, m.Ready, m.Taints = s.wall(), false, []string{"join", "other"}
			m.rebooted = s.now + time.Duration(10+s.random.IntN(600))*time.Second
		})
	}
}

// oddity: a node leaves, is updated by others, comes under pressure, or turns pods away; or the API server refuses its PATCH, or other
// writes.
func (s *sim) oddity(m *machine) {
	m.dirty = true
	switch s.random.IntN(9) {
	case 8:
		s.upgradeKubelets()
	case 0:
		m.Leaving, m.touched = !m.Leaving, true
	case 1:
		m.Updating, m.touched = !m.Updating, true
	case 2:
		m.Pressure ^= MemoryPressure
	case 3:
		s.turned = append(slices.Clone(s.turned), TurnedAway{Node: m.UID, Namespace: []string{"a", "b"}[s.random.IntN(2)], Unbound: true})
	case 4:
		s.refuses[m.Name] = !s.refuses[m.Name]
	case 5:
		m.Supervised, m.Layered, m.touched = true, true, true
	case 6:
		m.says([]string{nodev1.ReasonSyncFailed, nodev1.ReasonFallbackBroken, nodev1.ReasonInternalError, nodev1.ReasonStopped, nodev1.ReasonLastKnownGoodFailed, nodev1.ReasonAssignmentLost}[s.random.IntN(6)])
	case 7:
		s.refuseObjects()
	}
}

// upgradeKubelets: half of the nodes get a newer kubelet, which is healthy with what it runs.
func (s *sim) upgradeKubelets() {
	for _, uid := range s.api.names {
		if m := s.api.machines[uid]; s.random.IntN(2) == 0 {
			m.Minor, m.BootID = "v1.37", "boot-37"
			s.api.stamp(m)
		}
	}
}

// vanishes: some come back with the same name, and another uid.
func (s *sim) vanishes(m *machine) {
	s.api.remove(m.UID)
	if s.random.IntN(2) == 0 {
		return
	}
	s.nodes++
	back := newMachine(s.random, m.Name, s.nodes, s.wall(), s.api.natureOf)
	back.UID, back.Labels, back.Created = uidOf(s.nodes), m.Labels, s.wall()
	back.Ready = s.random.IntN(2) == 0
	if m.running != nodev1.Local { // the kubelet keeps what it ran
		back.Reason, back.Active, back.Good, back.running, back.good = nodev1.ReasonAssignmentLost, m.running, m.good, m.running, m.good
	}
	s.api.add(back)
}

// people change a pool.
func (s *sim) people(kind uint8) {
	names := slices.Sorted(maps.Keys(s.api.pools))
	if len(names) == 0 {
		s.makePool("a")
		return
	}
	name := names[s.random.IntN(len(names))]
	p := s.api.pools[name].DeepCopy()
	p.Generation++
	r := &p.Spec.Rollout
	switch kind {
	case 57:
		p.Spec.Layers = s.someLayers()
	case 58:
		r.Paused = !r.Paused
	case 59:
		r.Retry = []string{"", "one", "two", "three"}[s.random.IntN(4)]
	case 60:
		r.Pin = nil
		if s.random.IntN(2) == 0 {
			r.Pin = pinned(int64(s.random.IntN(4)))
		}
	case 61:
		s.peopleRarely(p)
	case 62:
		s.step += time.Duration(s.random.IntN(3)-1) * time.Hour
	case 63:
		s.api.layers = maps.Clone(s.api.layers)
		switch s.random.IntN(3) {
		case 0:
			delete(s.api.layers, Ref{"fleet", "kubelet"})
		case 1:
			s.api.layers[Ref{"fleet", "kubelet"}] = Layer{Missing: true}
		case 2:
			s.setLayer(`{"maxPods":101,"logging":{"format":"good"}}`)
		}
	}
	if s.api.pools[name] != nil {
		s.api.pools[name] = p
	}
}

func (s *sim) peopleRarely(p *v1alpha1.KubeletPool) {
	switch s.random.IntN(10) {
	case 7:
		s.restrain(&p.Spec.Rollout)
	case 8, 9:
		s.budget()
	case 0:
		p.Spec.Rollout.MaxUnavailable = amountOf([]string{"0", "1", "50%"}[s.random.IntN(3)])
	case 1:
		p.Spec.Selector.MatchLabels = map[string]string{"pool": []string{"a", "b"}[s.random.IntN(2)]}
	case 2:
		p.Spec.Priority = int32(s.random.IntN(2))
	case 3:
		delete(s.api.pools, p.Name)
	case 4:
		p.Spec.Layers[0] = inline("fleet", `{"staticPodPath":"relative"}`)
	case 5:
		s.makePool("b")
	case 6:
		if kept := s.api.revisions[p.Name]; len(kept) > 0 {
			kept = slices.Clone(kept)
			kept[s.random.IntN(len(kept))].Tampered = s.random.IntN(2) == 0
			s.api.revisions[p.Name] = kept
		}
	}
}
