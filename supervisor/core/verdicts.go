package core

import (
	"reflect"
	"slices"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// Verdicts is what was found out about configurations, and about the environment that has them fail.
type Verdicts struct {
	LastKnownGood    *Version
	Promoted         Promotion `json:"promoted,omitzero"`
	Proofs           []Proof
	Unanswered       []Unanswered   // pre-flights that gave no answer yet
	Unrenderable     []Unrenderable // versions whose file cannot be made now
	Rejected         []Rejection
	Suspects         []Suspect `json:"suspects,omitempty"`
	Excuses          Excuses   `json:"excuses,omitzero"`
	Environment      string    // why the environment is to blame; empty = it is not
	EnvironmentRetry time.Duration
	NoRoom           bool // for the newest pre-flight that blamed it
}

// verdictOn returns the verdict on a version under a kubelet. fault is why its layers cannot be laid over the node's own file.
func (vs *Verdicts) verdictOn(v *Version, kubelet kubeletconfig.Identity, fault string) Verdict {
	if v.Content == "" {
		return Verdict{Kind: VerdictUnreadable, On: v, Words: fault}
	}
	if words := vs.cannotRender(v); words != "" {
		return Verdict{Kind: VerdictUnrenderable, On: v, Words: words}
	}
	if p := vs.proof(v.Content, kubelet); p != nil && p.refused() {
		return Verdict{Kind: VerdictRefused, On: v, Words: p.Words, Load: p.Load}
	}
	if r := vs.rejection(v, kubelet); r != nil {
		return Verdict{Kind: VerdictRejected, On: v, Words: r.Words, Cause: r.Cause, Times: r.Times, ExitCode: r.ExitCode}
	}
	if x := vs.suspect(v, kubelet); x != nil {
		return Verdict{Kind: VerdictSuspected, On: v, Words: x.Words, Cause: x.Cause, Times: x.Times, ExitCode: x.ExitCode, Excused: x.Excused}
	}
	if vs.promoted(v, kubelet) {
		return Verdict{Kind: VerdictGood, On: v}
	}
	return Verdict{On: v}
}

func (vs *Verdicts) learnUnanswered(now time.Duration, e Proved) {
	u := Unanswered{Content: e.Content, Kubelet: e.Kubelet, Words: e.Words, Since: now, At: now, Tries: 1}
	if before := vs.unanswered(e.Content, e.Kubelet); before != nil {
		u.Since, u.Tries = before.Since, before.Tries+1
	}
	vs.Unanswered = newest(vs.answered(e), u)
}

// answered returns the pre-flights without an answer, except the one that has just come back.
func (vs *Verdicts) answered(e Proved) []Unanswered {
	return without(vs.Unanswered, func(u Unanswered) bool { return u.Content == e.Content && u.Kubelet == e.Kubelet })
}

func (vs *Verdicts) unanswered(content string, kubelet kubeletconfig.Identity) *Unanswered {
	for i := range vs.Unanswered {
		if u := &vs.Unanswered[i]; u.Content == content && u.Kubelet == kubelet {
			return u
		}
	}
	return nil
}

func (vs *Verdicts) promoted(v *Version, kubelet kubeletconfig.Identity) bool {
	return vs.Promoted.Content == v.Content && vs.Promoted.Kubelet == kubelet
}

// proof returns the kept verdict on a content under the given kubelet; nil when there is none.
func (vs *Verdicts) proof(content string, kubelet kubeletconfig.Identity) *Proof {
	for i := range vs.Proofs {
		p := &vs.Proofs[i]
		if p.Content == AnyContent && p.Kubelet.Binary == kubelet.Binary || p.Content == content && p.Kubelet == kubelet {
			return p
		}
	}
	return nil
}

// cannotRender returns why the version's file cannot be made; empty when it can.
func (vs *Verdicts) cannotRender(v *Version) string {
	for _, x := range vs.Unrenderable {
		if x.Content == v.Content {
			return x.Words
		}
	}
	return ""
}

func (vs *Verdicts) rejection(v *Version, kubelet kubeletconfig.Identity) *Rejection {
	for i := range vs.Rejected {
		if r := &vs.Rejected[i]; r.Content == v.Content && r.Binary == kubelet.Binary && r.Arguments == kubelet.Arguments {
			return r
		}
	}
	return nil
}

func (vs *Verdicts) suspect(v *Version, kubelet kubeletconfig.Identity) *Suspect {
	for i := range vs.Suspects {
		if x := &vs.Suspects[i]; x.Version.Content == v.Content && x.Kubelet == kubelet {
			return x
		}
	}
	return nil
}

// environmentBlocks reports whether the environment is to blame, and was asked too recently to be asked again.
func (vs *Verdicts) environmentBlocks(now time.Duration) bool {
	return vs.Environment != "" && now < vs.EnvironmentRetry
}

// nameLayers has a kept refusal say which layers it is about.
func (vs *Verdicts) nameLayers(e Blamed) {
	proofs := make([]Proof, len(vs.Proofs))
	for i, p := range vs.Proofs {
		if p.Content == e.Content && p.Kubelet == e.Kubelet && p.Outcome == kubeletconfig.Refused {
			p.Layers = 0
			if e.Words != "" {
				p.Words = e.Words + ": " + p.Words
			}
		}
		proofs[i] = p
	}
	vs.Proofs = proofs
}

func (vs *Verdicts) takeUpExcused() {
	vs.Suspects = without(vs.Suspects, func(x Suspect) bool { return x.Excused })
}

// effectiveOf returns the digest that is kept of what is about to be started; empty = unknown.
func (vs *Verdicts) effectiveOf(start Start) string {
	if p := vs.proof(ContentOr(start.Version, start.Local), start.Kubelet); p != nil {
		return p.Effective
	}
	return ""
}

// controlTime returns how long the fallback has to stay healthy.
func (vs *Verdicts) controlTime(settings Settings) time.Duration {
	least := settings.healthThatCounts()
	for _, x := range vs.Suspects {
		least = max(least, 2*time.Duration(x.Life))
		if x.Excused && x.Version.Content == vs.Excuses.Content {
			least = max(least, vs.Excuses.pause())
		}
	}
	return least
}

// excuse notes that the control failed as well: the environment is to blame.
func (vs *Verdicts) excuse(assigned *Version) {
	var excused []Suspect
	for _, x := range vs.Suspects {
		if !x.Excused {
			x.Excused, x.Words = true, "the fallback fails as well; "+x.Words
			vs.countExcuse(assigned, x)
		}
		excused = append(excused, x)
	}
	vs.Suspects = excused
}

func (vs *Verdicts) countExcuse(assigned *Version, x Suspect) {
	if !Same(assigned, &x.Version) { // only what is assigned is tried again
		return
	}
	if vs.Excuses.Content != x.Version.Content {
		vs.Excuses = Excuses{Content: x.Version.Content}
	}
	vs.Excuses.Times++
}

// keep keeps the newest verdict of a kubelet on a content.
func (vs *Verdicts) keep(p Proof) {
	vs.Proofs = newest(without(vs.Proofs, func(x Proof) bool { return x.Content == p.Content && x.Kubelet == p.Kubelet }), p)
}

// owed returns the pre-flight of a content that has given no answer yet; nil = there is a verdict, or none was asked for.
func (vs *Verdicts) owed(content string, kubelet kubeletconfig.Identity) *Unanswered {
	if vs.proof(content, kubelet) != nil {
		return nil
	}
	return vs.unanswered(content, kubelet)
}

// needsTrial reports whether v, started with that kubelet, would be on trial (rules 7 and 9).
func (vs *Verdicts) needsTrial(v *Version, kubelet kubeletconfig.Identity) bool {
	return v != nil && !vs.promoted(v, kubelet)
}

// isUnsaved reports whether a promotion or a rejection is not on the disk yet.
func (vs *Verdicts) isUnsaved(disk Durable) bool {
	return !reflect.DeepEqual(vs.LastKnownGood, disk.LastKnownGood) ||
		slices.ContainsFunc(vs.Rejected, func(x Rejection) bool { return !slices.Contains(disk.Rejected, x) })
}
