//go:build linux

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// kubeletOOMScoreAdj is the value that a kubelet gives itself when its configuration names none.
const kubeletOOMScoreAdj = -999

// An OOMScore is what a kubelet that this process starts can do with its oom_score_adj. One that may not set what its configuration
// says tries twice and sleeps 100 ms after each try, at every start: a restart that takes 100 ms then takes 300. Lowering the score
// needs CAP_SYS_RESOURCE, which many containers and test machines do not have.
type OOMScore struct {
	MayLower bool `json:"mayLower"` // the kubelet's own default can be set
	Given    int  `json:"given"`    // what kubelets are given: that default, or what they have anyway when this process starts them
}

// KubeletOOMScore is the same for all clusters of this process.
var KubeletOOMScore = sync.OnceValue(findOOMScore)

// findOOMScore has a child try it: the capability alone does not tell, because inside a user namespace it does not count.
func findOOMScore() OOMScore {
	try := exec.Command("sh", "-c", fmt.Sprintf("echo %d >/proc/self/oom_score_adj", kubeletOOMScoreAdj))
	if try.Run() == nil {
		return OOMScore{MayLower: true, Given: kubeletOOMScoreAdj}
	}
	var score OOMScore
	if own, err := os.ReadFile("/proc/self/oom_score_adj"); err == nil {
		score.Given, _ = strconv.Atoi(strings.TrimSpace(string(own)))
	}
	return score
}

// Lines is for a KubeletConfiguration: nothing where the kubelet's default does.
func (s OOMScore) Lines() string {
	if s.MayLower {
		return ""
	}
	return fmt.Sprintf("oomScoreAdj: %d\n", s.Given)
}

// String says what was found and what was given.
func (s OOMScore) String() string {
	if s.MayLower {
		return fmt.Sprintf("a kubelet may lower its oom_score_adj here, so it has its own default, %d", kubeletOOMScoreAdj)
	}
	return fmt.Sprintf("a kubelet may not lower its oom_score_adj to %d here, for want of CAP_SYS_RESOURCE. It would sleep 2 × 100 ms at every start. "+
		"So all have oomScoreAdj: %d, that of the process that starts them", kubeletOOMScoreAdj, s.Given)
}
