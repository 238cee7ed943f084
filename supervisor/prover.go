//go:build linux

package supervisor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// prover asks the kubelet's program what it makes of a configuration, and keeps what it told.
type prover struct {
	*inputs
	payloads   *payloads
	preflight  *kubelet.Preflight
	effectives effectives
	files      atomic.Int64 // how many pre-flights were given
}

// prove carries out a pre-flight, with its control.
func (p *prover) prove(ctx context.Context, do core.Prove) core.Proved {
	proved, _ := p.judge(ctx, do)
	proved.Nonce = rand.Text()
	return proved
}

// judge is prove, with all that the kubelet said.
func (p *prover) judge(ctx context.Context, do core.Prove) (proved core.Proved, verdict kubelet.Verdict) {
	proved = core.Proved{Proof: core.Proof{Content: core.ContentOr(do.Version, do.Local), Kubelet: do.Kubelet}}
	p.makeRunDir()
	candidate, err := p.payloads.render(do.Version, p.ownFile("candidate"))
	defer removeOwnFile(candidate)
	var load *kubeletconfig.LoadError
	if errors.As(err, &load) {
		proved.Outcome, proved.Load, proved.Words = kubeletconfig.Refused, true, load.Words
		return proved, verdict
	}
	if err != nil {
		proved.Outcome, proved.Words = kubeletconfig.Environment, err.Error()
		return proved, verdict
	}
	control := p.control(do)
	if control != nil {
		defer removeOwnFile(control.File)
	}
	asked := *p.preflight
	asked.Timeout = kubelet.PreflightTimeout(do.Tries)
	verdict = asked.Check(ctx, kubelet.Candidate{File: candidate}, control)
	if ctx.Err() != nil {
		return core.Proved{}, kubelet.Verdict{} // abandoned: it says nothing
	}
	if verdict.Outcome == kubeletconfig.Refused && !p.isAbout(do) {
		verdict = notAbout(verdict)
	}
	take(&proved, verdict)
	p.explain(&proved, do, verdict)
	if proved.Outcome == kubeletconfig.Refused && do.Version != nil {
		proved.Layers = len(p.payloads.layersOf(do.Version.Source))
	}
	return proved, verdict
}

// take turns a verdict into an event of the core.
func take(proved *core.Proved, verdict kubelet.Verdict) {
	proved.Outcome, proved.Load, proved.Words = verdict.Outcome, verdict.Load, verdict.Words
	proved.NoMorePreflight, proved.Unanswered, proved.NoRoom = verdict.NoMorePreflight, verdict.Unanswered, verdict.NoRoom
}

// ownFile names a file of RUN_DIR for one pre-flight. Others may be under way with other configurations: one that was given up, and that of
// a forecast, which asks what runs. A verdict about the file of another would be a lie.
func (p *prover) ownFile(name string) string {
	return fmt.Sprintf("%s/%s-%d.yaml", preflightFolder, name, p.files.Add(1))
}

// removeOwnFile leaves nothing of a configuration behind. One that stays is removed at the next start.
func removeOwnFile(path string) {
	if path != "" {
		_ = os.Remove(path)
	}
}

func (p *prover) control(do core.Prove) *kubelet.Candidate {
	if do.Alone {
		return nil
	}
	file, err := p.payloads.render(do.Control, p.ownFile("control"))
	if err != nil {
		return &kubelet.Candidate{} // the local command line is always there
	}
	return &kubelet.Candidate{File: file}
}

// explain adds what a pre-flight found out in addition to its verdict.
func (p *prover) explain(proved *core.Proved, do core.Prove, verdict kubelet.Verdict) {
	for _, words := range verdict.GoingAway {
		p.Logger.Warn("the kubelet says of " + core.Describe(do.Version) + ": " + words)
	}
	proved.Shadowed, proved.Version = verdict.Shadowed, verdict.Version
	told := verdict.Effective
	if !p.isAbout(do) {
		told = kubeletconfig.Effective{}
	}
	p.effectives.keep(proved.Content, do.Kubelet, told, do.Version == nil)
	if do.Version == nil {
		proved.Effective = told.Digest("", nil)
		return
	}
	source := do.Version.Source
	payload, err := p.payloads.checkpoint(source)
	if err != nil {
		return
	}
	proved.UnknownFields = kubeletconfig.UnknownFields(payload, source.KubeletConfigKey, verdict.Minor)
	proved.Warnings = slices.Concat(p.resolverWarning(verdict), kubeletconfig.Warnings(payload, source.KubeletConfigKey, verdict.Minor),
		gatesOf(verdict.GoingAway))
	others := maps.Clone(payload)
	delete(others, source.KubeletConfigKey)
	proved.Effective = told.Digest(p.payloads.store.CheckpointFolder(source), others)
}

// isAbout reports whether the files on disk are still those that the pre-flight was meant for. Of files that have changed since, it is not
// known which the kubelet read, so its answer must not be taken for theirs.
func (p *prover) isAbout(do core.Prove) bool {
	now, err := p.lookLocal()
	return err == nil && now.Kubelet == do.Kubelet && (do.Version != nil || now.Local == do.Local)
}

// notAbout returns the answer for a refusal that may be about files which are no longer on disk: it counts nothing, and the kubelet is
// asked again.
func notAbout(refusal kubelet.Verdict) kubelet.Verdict {
	return kubelet.Verdict{Outcome: kubeletconfig.Unknown, Unanswered: true, NoMorePreflight: refusal.NoMorePreflight,
		Words: "no verdict of the pre-flight: the local files or the kubelet binary changed while the kubelet was asked, and then it said: " +
			refusal.Words}
}

// resolverWarning compares the resolver with that of the node's own configuration, and with that of what runs.
func (p *prover) resolverWarning(verdict kubelet.Verdict) []string {
	runs, _ := p.effectives.running()
	if words := cmp.Or(verdict.Resolver, kubeletconfig.LoopingResolver(verdict.Effective, runs)); words != "" {
		return []string{words}
	}
	return nil
}

// gatesOf leaves out flags, which are no matter of a configuration: they are in the log.
func gatesOf(goingAway []string) []string {
	return slices.DeleteFunc(slices.Clone(goingAway), func(words string) bool { return !strings.HasPrefix(words, "featureGates.") })
}

// blame leaves out each layer once, and names those without which the kubelet accepts the others.
func (p *prover) blame(ctx context.Context, do core.Blame) core.Blamed {
	blamed := core.Blamed{Content: do.Version.Content, Kubelet: do.Kubelet}
	var guilty []string
	for i, layer := range p.payloads.layersOf(do.Version.Source) {
		file, err := p.renderWithout(do.Version, i)
		if err != nil {
			continue
		}
		verdict := p.preflight.Check(ctx, kubelet.Candidate{File: file}, nil)
		removeOwnFile(file)
		if verdict.Outcome == kubeletconfig.Accepted {
			guilty = append(guilty, layer.Name)
		}
		if ctx.Err() != nil {
			return blamed
		}
	}
	if len(guilty) > 0 {
		blamed.Words = "without layer " + strings.Join(guilty, ", or without layer ") + ", it would be accepted"
	}
	return blamed
}

func (p *prover) renderWithout(v core.Version, layer int) (string, error) {
	payload, err := p.payloads.checkpoint(v.Source)
	if err != nil {
		return "", err
	}
	key := v.Source.KubeletConfigKey
	composed, err := kubeletconfig.ComposeWithout(payload, key, layer, func() (kubeletconfig.Base, error) { return p.payloads.readBase(v) })
	if err != nil {
		return "", err
	}
	data, err := p.payloads.renderComposed(v.Source, composed)
	if err != nil {
		return "", err
	}
	path := filepath.Join(p.RunDir, p.ownFile("without-a-layer"))
	return path, replaceRunFile(path, data)
}
