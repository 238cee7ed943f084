package kubeletconfig

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// Settings of gates that are stable or deprecated, in the words up to Kubernetes 1.34 and those since, text or JSON.
	gateGoesAway = regexp.MustCompile(`(?i)(?:setting|overriding default of) (?:a )?(GA|deprecated) feature gate(?: (\w+)=\w+)?\. It will be removed in a future release\.(?:.*"?featureGate"?[=:]"(\w+)")?`)
	flagGoesAway = regexp.MustCompile(`^Flag (--[\w-]+) has been deprecated, (.*)$`)
)

// GoingAway lists gates and flags that a later version will no longer have, by the kubelet's output: at most 10, sorted. A
// flag that should only be a field of the file stays.
func GoingAway(output []byte) []string {
	var found []string
	for line := range strings.Lines(string(output)) {
		line = strings.TrimRight(line, "\r\n")
		if gate := gateGoesAway.FindStringSubmatch(line); gate != nil && gate[2]+gate[3] != "" {
			found = append(found, "featureGates."+gate[2]+gate[3]+" goes away in a later version: it is "+gate[1])
		}
		if flag := flagGoesAway.FindStringSubmatch(line); flag != nil && strings.Contains(strings.ToLower(flag[2]), "removed") {
			found = append(found, flag[1]+" goes away in a later version: "+flag[2])
		}
	}
	slices.Sort(found)
	return atMost(slices.Compact(found))
}
