//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

const operatingPage = "docs/start/operating.md"

// docs/start/operating.md is true: each of its commands is run, in their order and on the real parts, and answers as the page says, but
// for what is another each time. UPDATE_GOLDEN=1 writes the answers into the page.
func TestOperating(t *testing.T) {
	n := pluginNode(t)
	n.startedLocal(t, options{Flags: []string{"--trial-period=8s"}})
	text, err := os.ReadFile(filepath.Join("../..", operatingPage))
	if err != nil {
		t.Fatal(err)
	}
	p := &page{node: n, folder: n.deskFor(t), names: map[string]string{}}
	var now strings.Builder
	for _, part := range pages.Split(string(text)) {
		if part.Commands == nil {
			now.WriteString(part.Text)
			continue
		}
		now.WriteString("```console\n")
		for _, c := range part.Commands {
			now.WriteString(p.check(t, c))
		}
		now.WriteString("```\n")
		if t.Failed() && os.Getenv("UPDATE_GOLDEN") == "" {
			t.FailNow() // what follows would fail for this
		}
	}
	if os.Getenv("UPDATE_GOLDEN") != "" && now.String() != string(text) {
		if err := os.WriteFile(filepath.Join("../..", operatingPage), []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// deskFor makes a folder as a person has it at hand: kubectl and the plugin by their names, and the project's manifests.
func (n *node) deskFor(t *testing.T) string {
	t.Helper()
	plugin, err := buildPluginOnce()
	if err != nil {
		t.Fatalf("building the plugin: %v", err)
	}
	manifests, err := filepath.Abs("../../deploy")
	if err != nil {
		t.Fatal(err)
	}
	completion, err := filepath.Abs("../../cmd/kubectl-kubelet/kubectl_complete-kubelet")
	if err != nil {
		t.Fatal(err)
	}
	words := n.KubectlArguments()
	folder := t.TempDir()
	for link, target := range map[string]string{
		"kubectl": words[slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "/kubectl-") })], "kubectl-kubelet": filepath.Join(plugin, "kubectl-kubelet"),
		"kubectl_complete-kubelet": completion, "deploy": manifests,
	} {
		if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// shell runs a line as a person's shell at that desk would, with y for every question. It gives all that was printed.
func (n *node) shell(t *testing.T, folder, line string) string {
	t.Helper()
	command := n.Command("bash", "-c", line)
	command.Dir = folder
	command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(n.Folder, "admin.kubeconfig"),
		"KUBECACHEDIR="+filepath.Join(n.Folder, "kubectl-cache"))
	command.Stdin = strings.NewReader("y\n")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("$ %s\n%s", line, output.String())
	answer := strings.NewReplacer("[y/N] ", "[y/N] y\n", // the terminal shows what was typed
		n.Folder, "/srv/n1", filepath.Base(n.Folder), "n1").Replace(output.String())
	return givenHere.ReplaceAllString(answer, "")
}

// givenHere is what the node's configuration has on some machines alone: where a kubelet may not lower its own.
var givenHere = regexp.MustCompile(`(?m)^  oomScoreAdj: .*\n`)

// A page is one that is being checked.
type page struct {
	node   *node
	folder string
	names  map[string]string // of ConfigMaps: what the page calls them, and what they are called now
}

// hashed are the names of the page that end with a hash of the content, which holds paths of this machine.
var hashed = regexp.MustCompile(`\b(workers|refused|my-node-config)-[bcdfghkmt0-9]{10}\b`)

// check runs a command of the page, and gives what the page should say of it.
func (p *page) check(t *testing.T, c pages.Command) string {
	t.Helper()
	line := hashed.ReplaceAllStringFunc(c.Line, func(name string) string {
		if now, known := p.names[name]; known {
			return now
		}
		return name
	})
	// A kubelet that has just been started says for a moment that it is not Ready.
	p.node.awaitNode(t, "the Node is Ready", func(v nodeView) bool { return v.Ready })
	answer := p.node.shell(t, p.folder, line)
	before, after := hashed.FindAllString(c.Answer, -1), hashed.FindAllString(answer, -1)
	for i, name := range after {
		if i < len(before) && p.names[before[i]] == "" {
			p.names[before[i]] = name
		}
		p.names[hashed.FindStringSubmatch(name)[1]+"-0000000000"] = name // the newest, in a page that has no answers yet
	}
	if want, got := p.bare(c.Answer), p.bare(answer); want != got && os.Getenv("UPDATE_GOLDEN") == "" {
		t.Errorf("the page is not true any more (UPDATE_GOLDEN=1 rewrites it):\n$ %s\nit says\n%s\nand the answer is\n%s", line, want, got)
	}
	return "$ " + line + "\n" + answer
}

// bare is an answer without what is another each time.
func (p *page) bare(answer string) string {
	for _, mask := range []struct {
		pattern *regexp.Regexp
		by      string
	}{
		{regexp.MustCompile(`(?m)^` + cluster.NodeName + `: (waits for|Applying|RolledBack|runs it on trial).*\n`), ""}, // on the way, and maybe not seen
		{regexp.MustCompile(`(?m)^ +(download|wait|preflight|stop|start) \S+ \|.*$`), " PHASES"},                        // the short ones may not be there
		{regexp.MustCompile(`, oomScoreAdj\b`), ""},                                                                     // given where the kubelet may not lower its own
		{hashed, "$1-HASH"},
		{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
		{regexp.MustCompile(`(?i)(resourceVersion"?:? "?)\d+`), "${1}VERSION"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
		{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|s|m|h))+\b`), "DURATION"},
		{regexp.MustCompile(` {2,}`), " "},
	} {
		answer = mask.pattern.ReplaceAllString(answer, mask.by)
	}
	return answer
}
