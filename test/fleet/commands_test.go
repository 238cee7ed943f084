//go:build e2e

package fleet

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// plugin is kubectl-kubelet, built once.
var plugin = sync.OnceValues(func() (string, error) {
	if binary := os.Getenv("KUBELET_SUPERVISOR_TEST_PLUGIN"); binary != "" {
		return binary, nil
	}
	binary := filepath.Join(scratch, "kubectl-kubelet")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/kubectl-kubelet")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	if err != nil {
		err = errors.Join(err, errors.New(string(output)))
	}
	return binary, err
})

// A desk is where somebody types commands of the plugin.
type desk struct {
	t          *testing.T
	f          *fleet
	binary     string
	kubeconfig string
}

func (f *fleet) deskOf(t *testing.T, user string, groups ...string) desk {
	t.Helper()
	binary, err := plugin()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := f.credentials(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return desk{t, f, binary, kubeconfig}
}

// run types a command, and gives its exit code and what it says.
func (d desk) run(arguments ...string) (code int, said string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*time.Minute)
	defer cancel()
	words := d.f.Command(d.binary, append([]string{"--kubeconfig=" + d.kubeconfig, "--cache-dir=" + filepath.Join(scratch, "plugin-cache")}, arguments...)...).Args
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil && command.ProcessState == nil {
		d.t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), output.String()
}

// says types a command that ends with a code, and looks for words in what it says.
func (d desk) says(code int, line string, words ...string) string {
	d.t.Helper()
	got, said := d.run(strings.Fields(line)...)
	if got != code {
		d.t.Fatalf("%s: exit code %d, want %d:\n%s", line, got, code, said)
	}
	rest := said
	for _, word := range words {
		_, after, found := strings.Cut(rest, word)
		if !found {
			d.t.Fatalf("%s: %q is missing, or not in this order, in\n%s", line, word, said)
		}
		rest = after
	}
	return said
}

// bind gives a user of this test the roles that people have.
func (f *fleet) bind(t *testing.T, user string, clusterRoles, roles []string) {
	t.Helper()
	words := [][]string{}
	for _, role := range clusterRoles {
		words = append(words, []string{"create", "clusterrolebinding", user + "-" + role, "--clusterrole=" + role, "--user=" + user})
	}
	for _, role := range roles {
		words = append(words, []string{"create", "rolebinding", user + "-" + role, "-n", deploy.Namespace, "--role=" + role, "--user=" + user})
	}
	for _, line := range words {
		if _, err := f.Kubectl(t.Context(), line...); err != nil {
			t.Fatal(err)
		}
	}
}

// An operator's way through a rollout, by the commands alone and with the roles that the manifests have for that: a good revision, a deadly
// one that stops at the canary, back, on again, and nodes that change hands.
func TestCommands(t *testing.T) {
	t.Parallel()
	const workers = "commands"
	c := newCrew(t, workers, 12, nil)
	f := c.f
	f.steady(t)
	f.bind(t, "oscar", []string{deploy.OperatorRole, deploy.PoolOperatorRole}, []string{deploy.OperatorRole, deploy.PoolViewerRole})
	f.bind(t, "victor", []string{deploy.ViewerRole, deploy.PoolViewerRole}, []string{deploy.ViewerRole, deploy.PoolViewerRole})
	oscar, victor := f.deskOf(t, "oscar"), f.deskOf(t, "victor")
	deadly := func(_, payload string) string {
		if strings.Contains(payload, "-1") {
			return nodev1.ReasonRefused
		}
		return ""
	}
	c.nature, c.trial = deadly, 100*time.Millisecond
	half := intstr.FromString("50%")
	c.roll(quick, func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.MaxUnavailable = &half })
	oscar.says(0, "rollout status commands --timeout=90s", "commands: revision 1 (maxPods 250 in layer density), completed", "12 nodes: 12 proven, 0 failed")
	if failed, err := f.Kubectl(t.Context(), "get", "kpool", "commands", "-o", "jsonpath={.status.nodes.failed}"); err != nil || failed != "0" {
		t.Errorf("of failed nodes there are %q, %v", failed, err)
	}
	oscar.says(0, "status -l "+poolLabel+"=commands", "POOL", "commands", "Active")

	c.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":-1}}]}}`)
	oscar.says(1, "rollout status commands --timeout=60s", `error: pool "commands" stopped in wave 1: commands-`, "Refused: "+refusedWords,
		"runs revision 1, its last known good; the other 11 nodes were not touched", "kubectl kubelet rollout undo commands     or change layer density")
	oscar.says(1, "rollout undo commands --to-revision=2", "pool commands does not go to revision 2, because it was stopped")
	victor.says(1, "rollout status commands", "stopped in wave 1")
	victor.says(1, "rollout undo commands", "changing pool commands", "forbidden")

	oscar.says(0, "rollout undo commands", "from revision 2 back to revision 1, and pinned there", "kubeletpool.kubelet-supervisor.io/commands undone")
	oscar.says(0, "rollout status commands --timeout=60s", "revision 1", "completed", "pinned to revision 1, whatever its layers say")
	oscar.says(0, "rollout unpin commands", "unpinned")
	oscar.says(1, "rollout status commands --timeout=60s", "stopped in wave 1")

	c.nature = nil // the fault was the kubelet's
	oscar.says(0, "rollout retry commands", "tries revision 2 again, which was stopped", "retried")
	oscar.says(0, "rollout status commands --timeout=90s --revision=2", "revision 2", "completed", "12 proven")

	draft := filepath.Join(t.TempDir(), "pool.yaml")
	text := "apiVersion: kubelet-supervisor.io/v1alpha1\nkind: KubeletPool\nmetadata: {name: commands}\nspec:\n  selector: {matchLabels: {" + poolLabel + ": commands}}\n" +
		"  layers: [{name: density, inline: {maxPods: 200}}]\n  rollout: {waves: [{nodes: 1}, {nodes: 50%}]}\n"
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	oscar.says(2, "pool diff commands -f "+draft, "the API server does not take pool commands", "the last wave is 100%")
	victor.says(1, "pool diff commands -f "+draft, "warning: the API server was not asked whether it takes the file", "maxPods -1 → 200")

	oscar.says(0, "rollout pause commands --dry-run=server", "paused (server dry run)")
	if c.now().Spec.Rollout.Paused {
		t.Error("a dry run paused the pool")
	}
	oscar.says(0, "rollout pause commands", "paused")
	c.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":200}}]}}`)
	c.awaitReason(v1alpha1.ConditionProgressing, rollout.ReasonPaused, 30*time.Second)
	victor.says(0, "rollout status commands --watch=false", "revision 3 (maxPods -1 → 200 in layer density)", "12 old", "paused: kubectl kubelet rollout resume commands")
	oscar.says(0, "rollout resume commands", "resumed")
	oscar.says(0, "rollout status commands --timeout=90s", "of 4, attempt 2", "revision 3", "completed")
	victor.says(0, "rollout history commands", "1 ", "Completed", "maxPods 250 in layer density", "2 ", "Completed", "maxPods 250 → -1", "3 ", "Completed", "12", "target, stable")
	victor.says(0, "rollout history commands --revision=3", "Layer density (KubeletPool commands):", "maxPods: 200")

	c.handedOver(oscar)
	f.deskOf(t, "admin", "system:masters").says(0, "doctor commands-3", "the node is in pool commands", "kubelet-supervisor-controller runs", "policy kubelet-supervisor-revisions")
	oscar.says(0, "prune -n kubelet-config --dry-run=client")
}

// handedOver resets a node, and releases one, and gives both back.
func (c *crew) handedOver(oscar desk) {
	c.t.Helper()
	oscar.says(0, "reset commands-1 --yes --wait=false", "This takes commands-1 out of pool commands; kubectl kubelet rollout adopt commands-1 gives it back.", "reset")
	c.await("it is manual", 30*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Nodes.Manual == 1 })
	oscar.says(0, "rollout status commands --watch=false", "not moved: 1 manual (commands-1")
	oscar.says(0, "rollout release commands-2", "commands-2: no longer in pool commands; it keeps what it is assigned, kubelet-config/pool-commands-", "node/commands-2 released")
	c.await("it is no member", 30*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Nodes.Selected == 11 })
	oscar.says(0, "status commands-1 commands-2", "commands (by hand)", "commands (released)")
	before := len(c.patches())
	oscar.says(0, "rollout adopt commands-1 commands-2", "moves it from local to revision 3 when its turn comes", "node/commands-1 adopted", "node/commands-2 adopted")
	c.await("both have come back", 60*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Nodes.Proven == 12 && p.Status.Nodes.Manual == 0 })
	if sent := c.patches()[before:]; len(sent) != 1 || sent[0].node != "commands-1" {
		c.t.Errorf("to take them back it patched %v", sent)
	}
}

// What the command installs is what is there already, twice as well as once, with the program at the end, where its hosts were named. It is not
// parallel: the page about pools installs it, too.
func TestInstallController(t *testing.T) {
	f := shared(t)
	admin := f.deskOf(t, "admin", "system:masters")
	program := func() string {
		admin.says(0, "install --controller --image=registry.example/kubelet-supervisor-controller:v1 --controller-node-selector=example.com/host=yes --yes",
			"No node has example.com/host=yes, so the controller waits for one that has.", "customresourcedefinition.apiextensions.k8s.io/kubeletpools.kubelet-supervisor.io installed",
			"deployment.apps/kubelet-supervisor-controller installed")
		said, err := f.Kubectl(t.Context(), "get", "deployment", "-n", deploy.ControllerNamespace, deploy.ControllerName,
			"-o", "jsonpath={.spec.replicas} {.spec.template.spec.containers[*].image} {.spec.template.spec.affinity.nodeAffinity} {.metadata.generation}")
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	once, twice := program(), program()
	want := `2 registry.example/kubelet-supervisor-controller:v1 {"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":` +
		`[{"key":"example.com/host","operator":"In","values":["yes"]}]}]}} `
	if !strings.HasPrefix(once, want) || once != twice {
		t.Errorf("the Deployment has %q, and then %q", once, twice)
	}
}
