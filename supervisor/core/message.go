package core

import (
	"fmt"
	"strings"
)

// message returns the parts of the condition's message: the alpha's phrase for what runs, then why, the last exit and the warnings, and at
// the end what to do. A caller that has too little room for it keeps the first and the last ([bounded.Parts]).
func message(s *State, f finding) []string {
	parts := []string{using(s), f.why}
	if s.Exit != "" && f.status != "True" && !strings.Contains(f.why, s.Exit) && f.reason != "Stopped" {
		parts = append(parts, "last exit: "+s.Exit)
	}
	warnings := append(warnings(s), shadowWarning(s)) // that one last, because it can be long, and stays
	parts = append(parts, strings.Join(without(warnings, isEmpty), "; "), f.hint)
	return without(parts, isEmpty)
}

func isEmpty(part string) bool { return part == "" }

// messageLimit bounds the message of a condition or an event, in bytes.
const messageLimit = 1024

// using is the phrase of the alpha's ConfigOK condition (upstream 1.8).
func using(s *State) string {
	v := newestOf(s, s.inUse())
	role := "current"
	if s.Assigned != nil && !Same(v, s.Assigned) {
		role = "last-known-good"
	}
	if v == nil {
		return fmt.Sprintf("using %s (default)", role)
	}
	return fmt.Sprintf("using %s (UID: %q)", role, v.Source.UID)
}

// warnings returns what does not change the condition's status. Shadowed fields have a warning of their own.
func warnings(s *State) []string {
	var list []string
	if s.Shadowed {
		list = append(list, "the annotation wins over spec.configSource, which names another source")
	}
	if v := s.Assigned; v != nil {
		p := s.proof(v.Content, s.kubeletOf(v))
		if p != nil && !p.refused() {
			list = append(list, p.Warnings...)
		}
		if p != nil && p.Content == AnyContent {
			list = append(list, "no pre-flight with this kubelet: "+p.Words)
		}
	}
	if s.localFilesChanged() || mergePending(s) {
		list = append(list, "LocalChangePending: local files, drop-ins or the kubelet binary changed and take effect at the next "+
			"start"+pendingVerdict(s))
	}
	if files := s.Unit.changed(); files != "" {
		list = append(list, "LocalChangePending: files of the unit changed and take effect when systemd starts it again: "+files)
	}
	if s.Unit.Refuse != "" {
		list = append(list, "the next start by systemd may fail: "+s.Unit.Refuse)
	}
	if s.Warning != "" {
		list = append(list, s.Warning)
	}
	list = append(list, without([]string{s.Trial.worseWarning(s.Node, s.Child), s.Trial.unstartedWarning(s.Child)}, isEmpty)...)
	if s.PodsLost != "" {
		list = append(list, s.PodsLost)
	}
	if words := unforeseen(s); words != "" {
		list = append(list, "what it would do to running pods was not foreseen: "+words)
	}
	return list
}

// pendingVerdict returns what the pre-flight says of what runs, started with the changed files.
func pendingVerdict(s *State) string {
	v := s.Child.Version
	if mergePending(s) {
		v = s.Today.Version
	}
	p := s.proof(s.contentOf(v), s.OnDisk)
	if p == nil || !p.refused() {
		return ""
	}
	return ", which would be refused: " + p.Words
}

// Describe returns the name of a version for people.
func Describe(v *Version) string {
	if v == nil {
		return "the local configuration"
	}
	c := v.Source
	return fmt.Sprintf("%s/%s/%s (UID %s, resourceVersion %s)", c.Namespace, c.Name, c.KubeletConfigKey, c.UID, c.ResourceVersion)
}

// changeMessage returns exactly upstream's message of event KubeletConfigChanged.
func changeMessage(v *Version) string {
	if v == nil {
		return "Kubelet restarting to use local config"
	}
	c := v.Source
	return fmt.Sprintf("Kubelet restarting to use /api/v1/namespaces/%s/configmaps/%s, UID: %s, ResourceVersion: %s, KubeletConfigKey: %s",
		c.Namespace, c.Name, c.UID, c.ResourceVersion, c.KubeletConfigKey)
}
