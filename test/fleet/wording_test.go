//go:build e2e

package fleet

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// What kubelets say, as recorded in testdata/words.json.
const (
	refusedWords = "failed to validate kubelet configuration, error: invalid configuration: maxPods (--max-pods) -1 must not be a negative number"
	diedWords    = "exited 3 times in its trial: exit code 1: Failed to start ContainerManager: invalid Node Allocatable configuration. " +
		`Resource "memory" has a reservation of {{9895657078784 0} {<nil>} BinarySI} but capacity of {{25276502016 0} {<nil>} BinarySI}. ` +
		"Expected capacity >= reservation."
	// wouldDisruptDigest is the consent that the node asks for.
	wouldDisruptDigest = "0123456789ab"
	wouldDisruptWords  = "1 of 2 running pods would be killed at the restart: default/web (OutOfpods)"
)

// statusOf is what a supervisor says to programs.
func statusOf(reason, retry, detail string) nodev1.Status {
	s := nodev1.Status{Reason: reason, Retry: retry, Features: []string{nodev1.LayersFeature}}
	switch reason {
	case nodev1.ReasonRefused:
		s.Failure = &nodev1.Failure{Kind: nodev1.FailureRefused, Message: refusedWords}
	case nodev1.ReasonRolledBack, nodev1.ReasonRejected:
		code := 1
		s.Failure = &nodev1.Failure{Kind: nodev1.FailureExited, ExitCode: &code, Times: 3, Message: diedWords}
	case nodev1.ReasonWouldDisrupt:
		s.Hold = &nodev1.Hold{Approval: wouldDisruptDigest, Losses: []nodev1.Loss{{Pod: "default/web", Reason: "OutOfpods"}}, Known: true}
	case nodev1.ReasonSyncFailed:
		s.Failure = &nodev1.Failure{Kind: nodev1.FailureUnavailable, Message: detail}
	}
	return s
}

// wording is what a supervisor says in the condition's message, and in the error of config-status. TestPuppetsSpeakAsRecorded compares it.
func (p *puppet) wording(source, reason, detail string) (message, failure string) {
	why, hint := "", ""
	switch reason {
	case nodev1.ReasonLocal:
		why = "nothing is assigned"
	case nodev1.ReasonActive:
		why = "the assigned configuration passed its trial"
	case nodev1.ReasonInTrial:
		why = fmt.Sprintf("the assigned configuration is on trial for %s of health", p.crew.trial)
	case nodev1.ReasonApplying:
		why = "a change is under way"
	case nodev1.ReasonRefused:
		why, hint, failure = p.describe(source)+" is refused: "+refusedWords, "correct the configuration", core.ValidateError
	case nodev1.ReasonRolledBack:
		why, hint, failure = p.describe(source)+" "+diedWords, "correct the configuration", core.RunError
	case nodev1.ReasonRejected:
		why, failure = p.describe(source)+" "+diedWords, core.RunError
		hint = "correct the configuration, or set annotation kubelet-supervisor.io/retry"
	case nodev1.ReasonWouldDisrupt:
		why = p.describe(source) + " waits: " + wouldDisruptWords
		hint = "drain the node, or set annotation " + nodev1.AllowDisruptionAnnotation + "=" + wouldDisruptDigest
	default:
		why = detail
	}
	using := p.using(source)
	if reason == nodev1.ReasonWouldDisrupt {
		using = p.using(p.running)
	}
	message = strings.Join([]string{using, why}, "; ")
	if hint != "" {
		message += "; " + hint
	}
	return message, failure
}

func (p *puppet) using(source string) string {
	role := "current"
	if source != "" && source != p.running {
		role = "last-known-good"
	}
	if p.running == nodev1.Local {
		return fmt.Sprintf("using %s (default)", role)
	}
	return fmt.Sprintf("using %s (UID: %q)", role, p.version(p.running).ConfigMap.UID)
}

func (p *puppet) describe(source string) string {
	c := p.version(source).ConfigMap
	return fmt.Sprintf("%s/%s/%s (UID %s, resourceVersion %s)", c.Namespace, c.Name, c.KubeletConfigKey, c.UID, c.ResourceVersion)
}

// version is a source with what the node has read of it.
func (p *puppet) version(source string) *corev1.NodeConfigSource {
	if known, is := p.versions[source]; is {
		return known
	}
	return sourceOf(source)
}

func sourceOf(text string) *corev1.NodeConfigSource {
	words := strings.Split(text, "/")
	if len(words) != 3 {
		return nil
	}
	return &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: words[0], Name: words[1], KubeletConfigKey: words[2]}}
}
