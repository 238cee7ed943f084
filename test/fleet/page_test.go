//go:build e2e

package fleet

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

const poolsPage = "docs/howto/pools.md"

// What the page calls by a name that is the same for every reader.
var (
	anyHash = regexp.MustCompile(`\b(pool-workers)-[0-9a-f]{10}\b`)
	anyNode = regexp.MustCompile(`\bworkers-[0-9]+( Refused| Rejected| runs revision)`)
)

// The commands of the page about pools do what they are said to do, on four nodes of a pool of that name.
func TestPoolsPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../" + poolsPage)
	if err != nil {
		t.Fatal(err)
	}
	c := newCrew(t, "workers", 4, nil)
	c.trial = 100 * time.Millisecond
	c.f.steady(t)
	c.nature = func(_, payload string) string {
		switch {
		case strings.Contains(payload, "-1"):
			return nodev1.ReasonRefused
		case strings.Contains(payload, "9Ti"):
			return nodev1.ReasonRejected
		}
		return ""
	}
	type_ := c.f.shell(t)
	for _, line := range pages.Typed(string(text)) {
		output, err := type_(line.Line)
		got := anyNode.ReplaceAllString(anyHash.ReplaceAllString(output, "$1-HASH"), "workers-N$1")
		switch {
		case line.Answer != "" && !pages.Answers(line.Answer, got):
			t.Fatalf("$ %s\nthe page says\n%s\nand the answer is\n%s", line.Line, line.Answer, got)
		case line.Answer == "" && err != nil:
			t.Fatalf("$ %s\n%v: %s", line.Line, err, output)
		}
	}
}

// shell types lines as an administrator, where kubectl and the plugin are.
func (f *fleet) shell(t *testing.T) func(line string) (string, error) {
	t.Helper()
	plugin, err := plugin()
	if err != nil {
		t.Fatal(err)
	}
	return f.shellIn(t, t.TempDir(), map[string]string{"kubectl-kubelet": plugin})
}

// kubectl is where the real one is.
func (f *fleet) kubectl() string {
	for _, word := range f.KubectlArguments() {
		if filepath.IsAbs(word) && strings.HasPrefix(filepath.Base(word), "kubectl-") {
			return word
		}
	}
	return ""
}

// shellIn types lines in a folder, where kubectl and other programs are, by their names.
func (f *fleet) shellIn(t *testing.T, folder string, others map[string]string) func(line string) (string, error) {
	t.Helper()
	kubeconfig, err := f.credentials("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	others["kubectl"] = f.kubectl()
	for name, from := range others {
		if err := os.Symlink(from, filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	return func(line string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		words := f.Command("bash", "-c", line).Args
		command := exec.CommandContext(ctx, words[0], words[1:]...)
		command.Dir = folder
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+programs, "PATH="+programs+":"+os.Getenv("PATH"))
		output, err := command.CombinedOutput()
		return string(output), err
	}
}
