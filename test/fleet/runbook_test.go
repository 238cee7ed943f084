//go:build e2e

package fleet

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

// The commands of the pages about a pool's reasons and fields do what they are said to do, with kubectl alone. The pages call the pool
// workers.
func TestRunbook(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "runbook", 4, nil)
	c.f.steady(t)
	c.roll(quick)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", time.Minute)
	kubectl := c.f.kubectlAlone(t)
	for _, page := range []string{"docs/operate/pools.md", "docs/reference/pool.md"} {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		named := strings.ReplaceAll(string(text), "workers", c.pool)
		for _, line := range pages.Typed(named) {
			output, err := kubectl(line.Line)
			if err != nil || line.Answer != "" && !pages.Answers(line.Answer, output) {
				t.Errorf("%s: $ %s\nthe page says\n%s\nand the answer is\n%s%v", page, line.Line, line.Answer, output, err)
			}
		}
	}
}

// kubectlAlone is a shell of an administrator, in which variables stay.
func (f *fleet) kubectlAlone(t *testing.T) func(line string) (string, error) {
	t.Helper()
	programs, before := t.TempDir(), ""
	script := "#!/bin/sh\nexec " + strings.Join(f.KubectlArguments(), " ") + ` "$@"` + "\n"
	if err := os.WriteFile(filepath.Join(programs, "kubectl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return func(line string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, "bash", "-c", before+line)
		if name, _, is := strings.Cut(line, "="); is && !strings.Contains(name, " ") {
			before += line + "\n"
		}
		command.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
		output, err := command.CombinedOutput()
		return string(output), err
	}
}
