package core

import (
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// Version is one configuration: where it came from and what is in it. A nil *Version is local, the node's own configuration.
type Version struct {
	Source corev1.ConfigMapNodeConfigSource `json:"source"`
	// Content is kubeletconfig.Content of the payload. It is empty when the checkpoint could not be read: such a version equals nothing,
	// itself included, and is never started.
	Content string `json:"content,omitempty"`
	// Base is the digest of the node's own file that its layers lie over, and that is part of Content; empty = it has no such layers. Where
	// Content is empty, that file is why.
	Base string `json:"base,omitempty"`
}

// Cause says what a configuration, or its trial, failed at.
type Cause string

// The causes of a failed trial.
const (
	Exited       Cause = "Exited"       // too many unasked exits
	StartTimeout Cause = "StartTimeout" // not healthy in time, or unhealthy for as long altogether
	PortHeld     Cause = "PortHeld"     // never healthy: another process has its healthz port
	LeaseLost    Cause = "LeaseLost"    // healthy, but the Node's Lease is no longer renewed
)

// Proof is a kept pre-flight verdict. Content anyContent speaks of every configuration: the binary must not be asked again.
type Proof struct {
	Content  string                 `json:"content"`
	Kubelet  kubeletconfig.Identity `json:"kubelet"`
	Outcome  kubeletconfig.Outcome  `json:"outcome"`
	Load     bool                   `json:"load,omitempty"` // refused while loading or decoding, not while validating
	Words    string                 `json:"words,omitempty"`
	Warnings []string               `json:"warnings,omitempty"`
	// Version is what the kubelet calls its version, such as v1.36.3; empty = it did not say.
	Version string `json:"kubeletVersion,omitempty"`
	// UnknownFields are those of its fields that this kubelet leaves out.
	UnknownFields []string `json:"unknownFields,omitempty"`
	// Effective is the digest of the effective configuration ([config.Effective]) that the kubelet reported; empty = it did not.
	Effective string `json:"effective,omitempty"`
	// Shadowed are the fields that it does not run with, because flags or drop-in files override them.
	Shadowed []nodev1.ShadowedField `json:"shadowed,omitempty"`
	// Layers is how many there are whose share in a refusal is not known yet.
	Layers int `json:"layers,omitempty"`
}

// AnyContent is the Content of a Proof about every configuration.
const AnyContent = "*"

// Promotion says for which effective identity lastKnownGood was earned (rule 9).
type Promotion struct {
	Content string                 `json:"content,omitempty"`
	Kubelet kubeletconfig.Identity `json:"kubelet,omitzero"`
	Version string                 `json:"kubeletVersion,omitempty"` // of that kubelet; empty = unknown
}

// Suspect is a configuration that failed and waits for the verdict of its control, the fallback that runs now (rule 8).
type Suspect struct {
	Version Version                `json:"version"`
	Kubelet kubeletconfig.Identity `json:"kubelet"`
	Cause   Cause                  `json:"cause"`
	Words   string                 `json:"words,omitempty"`
	Life    Span                   `json:"life,omitempty"` // its longest life
	// Times is how often it exited where that is the cause, and ExitCode the last code; noExitCode where there was none.
	Times    Count `json:"times,omitempty"`
	ExitCode int   `json:"exitCode,omitempty"`
	// Excused says that the control failed the same way, or the node was short of what both take, and Words say so. The configuration is
	// tried again once the fallback has been healthy.
	Excused bool `json:"excused,omitempty"`
}

// Excuses counts how often in a row a configuration was excused, for the pause before it is tried again.
type Excuses struct {
	Content string `json:"content,omitempty"`
	Times   int    `json:"times,omitempty"`
}

// Rejection is a confirmed verdict. It holds for one content, kubelet binary and command line.
type Rejection struct {
	Content   string `json:"content"`
	Binary    string `json:"binary"`
	Arguments string `json:"arguments"`
	Cause     Cause  `json:"cause"`
	Words     string `json:"words,omitempty"`
	Times     Count  `json:"times,omitempty"` // as in [Suspect]
	ExitCode  int    `json:"exitCode,omitempty"`
}

// Durable is what survives a restart: all of it is kept by the store, each part in a file of its own.
type Durable struct {
	Assigned      *Version
	LastKnownGood *Version
	Account
	Rejected []Rejection
	Proofs   []Proof
}

// Account is what is kept in meta/trial.
type Account struct {
	Text    string   `json:"assignment,omitempty"` // the assignment that Assigned came from, verbatim
	NodeUID string   `json:"nodeUID,omitempty"`    // the Node that carried it
	Retry   string   `json:"retry,omitempty"`      // the newest retry request that was heard
	Active  *Version `json:"active,omitempty"`     // what a healthy kubelet was last seen running
	// Cluster has the digests of the keys of the certificate authorities of the cluster that all of this is about.
	Cluster []string `json:"cluster,omitempty"`
	// Renews says whether the Node's Lease was being renewed by a kubelet of ours, when it was last known.
	Renews bool `json:"leaseRenewed,omitempty"`
	// Before are the Node's conditions as the newest kubelet left them that was not on trial.
	Before Conditions `json:"conditions,omitzero"`
	// Hold is the change that waits, or has waited last.
	Hold HeldChange `json:"hold,omitzero"`
	// Approval is the newest that was spent.
	Approval string `json:"approval,omitempty"`
	// Asides are the state files that were set aside for what runs, or is about to.
	Asides []Aside `json:"setAside,omitempty"`
	// Limits are those of the host that kubelets have set since it booted, with what was there before.
	Limits []KeptLimit `json:"limits,omitempty"`

	Trial    Trial     `json:"trial,omitzero"`
	Promoted Promotion `json:"promoted,omitzero"`
	Suspects []Suspect `json:"suspects,omitempty"`
	Excuses  Excuses   `json:"excuses,omitzero"`
}

// Unrenderable is a content whose effective file could not be made: its checkpoint is gone or the run folder is full. It is passed over
// until its checkpoint was written again, the kubelet is started again, or a person asks.
type Unrenderable struct{ Content, Words string }

// storedEntries bounds each stored list (rule 15); the newest are kept.
const storedEntries = 20

// Problem is something that a person should hear of: upstream's error for status.config.error, and the detail for the condition.
type Problem struct {
	Malformed bool // the assignment itself is wrong, not merely out of reach
	OfNode    bool // the node's own file is, which its layers are to lie over
	Error     string
	Words     string
}

// Same reports whether two versions are the same configuration by content (rule 5). Local is only the same as local.
func Same(a, b *Version) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Content != "" && a.Content == b.Content
}

// bare returns the version without what the API server gives an object.
func (v *Version) bare() *Version {
	if v == nil {
		return nil
	}
	bare := *v
	bare.Source.UID, bare.Source.ResourceVersion = "", ""
	return &bare
}

func contentOf(v *Version) string { return ContentOr(v, "") }

// ContentOr returns the content of a version, and for local what is given.
func ContentOr(v *Version, local string) string {
	if v == nil {
		return local
	}
	return v.Content
}

func newest[T any](list []T, entry T) []T {
	grown := append(append(make([]T, 0, len(list)+1), list...), entry)
	return grown[max(0, len(grown)-storedEntries):]
}

func without[T any](list []T, drop func(T) bool) []T {
	var kept []T
	for _, entry := range list {
		if !drop(entry) {
			kept = append(kept, entry)
		}
	}
	return kept
}
