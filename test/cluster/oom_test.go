//go:build linux

package cluster

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A kubelet sleeps at every start if it may not set the oom_score_adj that its configuration says, or else its default.
func TestAKubeletMaySetTheOOMScoreThatItIsGiven(t *testing.T) {
	c := &Cluster{Name: "n", Folder: "/folder", kubelet: newestKubernetes}
	config := struct{ OOMScoreAdj *int }{}
	if err := yaml.Unmarshal([]byte(c.KubeletConfig()), &config); err != nil {
		t.Fatal(err)
	}
	score := kubeletOOMScoreAdj
	if config.OOMScoreAdj != nil {
		score = *config.OOMScoreAdj
	}
	if output, err := exec.Command("sh", "-c", fmt.Sprintf("echo %d >/proc/self/oom_score_adj", score)).CombinedOutput(); err != nil {
		t.Errorf("a child may not set %d: %v: %s", score, err, output)
	}
	if given := KubeletOOMScore().Given; given != score {
		t.Errorf("the configuration says %d, and %d is told", score, given)
	}
}

func TestOOMScoreIsSaid(t *testing.T) {
	for _, c := range []struct {
		score        OOMScore
		lines, words string
	}{
		{OOMScore{MayLower: true, Given: -999}, "", "its own default, -999"},
		{OOMScore{Given: 0}, "oomScoreAdj: 0\n", "So all have oomScoreAdj: 0,"},
		{OOMScore{Given: 300}, "oomScoreAdj: 300\n", "So all have oomScoreAdj: 300,"},
	} {
		if c.score.Lines() != c.lines || !strings.Contains(c.score.String(), c.words) {
			t.Errorf("%+v: %q, %q", c.score, c.score.Lines(), c.score)
		}
	}
}
