//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// The commands of this chapter are those of docs/howto/pools.md, but for the names of nodes; a test holds them against that page.

// poolYAML is the page's, too. What it leaves to its defaults is told where it is another here.
const poolYAML = `apiVersion: kubelet-supervisor.io/v1alpha1
kind: KubeletPool
metadata: {name: workers}
spec:
  selector: {matchLabels: {kubelet-supervisor.io/pool-of: workers}}
  layers:
  - {name: density, inline: {maxPods: 250}}
`

const shortSettle = "  rollout: {settle: 0s}\n"

const (
	poolPods          = 250
	controllerCommand = "kubelet-supervisor-controller --kubeconfig=controller.kubeconfig"
	statusCommand     = "kubectl kubelet rollout status workers"
)

var (
	installCommand      = "kubectl kubelet install --controller=external --yes"
	credentialsCommands = []string{
		"(umask 077; kubectl config view --minify --flatten --raw >controller.kubeconfig)",
		"kubectl config --kubeconfig=controller.kubeconfig unset users",
		`kubectl config --kubeconfig=controller.kubeconfig set-credentials controller --client-certificate=controller.crt --client-key=controller.key --embed-certs`,
		"kubectl config --kubeconfig=controller.kubeconfig set-context --current --user=controller",
	}
	labelCommand  = "kubectl label node n1 n2 n3 --overwrite kubelet-supervisor.io/pool-of=workers"
	applyCommands = []string{
		"kubectl kubelet pool diff workers -f pool.yaml || true",
		"kubectl apply --server-side -f pool.yaml",
	}
	undoCommands = []string{"kubectl kubelet rollout undo workers", statusCommand, "kubectl kubelet status"}
)

func deadlyLayer(tebibytes int) string {
	return fmt.Sprintf(`{"maxPods":%d,"systemReserved":{"memory":"%dTi"}}`, poolPods, tebibytes)
}

func deadlyCommand(tebibytes int) string {
	return `kubectl patch kpool workers --type=merge -p '{"spec":{"layers":[{"name":"density","inline":` + deadlyLayer(tebibytes) + `}]}}'`
}

func (d *demo) installPools(ctx context.Context) error {
	d.heading("9. Many nodes: what pools need is installed, and their controller runs")
	d.row("  ", "From here on the commands are those of docs/howto/pools.md, so you can type them on a cluster of yours.")
	installed, err := d.ask(ctx, installCommand)
	if err != nil {
		return err
	}
	d.row("    ", fmt.Sprintf("%d objects installed: namespaces, roles, policies and the kinds", strings.Count(string(installed), "\n")))
	d.row("  ", "The controller runs outside of the cluster, as a user of its own. A kube-controller-manager would sign its certificate; here the demo does:")
	identity, err := d.cluster.IdentityConfig(deploy.ControllerUser)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(d.folder, "controller.crt"), identity.CertData, 0o600),
		os.WriteFile(filepath.Join(d.folder, "controller.key"), identity.KeyData, 0o600)); err != nil {
		return err
	}
	if err := d.run(ctx, credentialsCommands...); err != nil {
		return err
	}
	return d.startController()
}

func (d *demo) join(ctx context.Context) error {
	d.heading("10. Two more nodes")
	d.row("  ", "n2 and n3 have a real kubelet-supervisor each, above a FAKE kubelet: a second real one has no place on this machine. "+
		"That they are Ready, and their Leases, the demo says for it.")
	for i, name := range []string{"n2", "n3"} {
		if err := d.addFake(ctx, name, 10258+10*i); err != nil {
			return err
		}
	}
	d.changed = time.Now()
	if _, err := d.awaitNodes(ctx, "all three run their own configuration", local); err != nil {
		return err
	}
	d.ok("three nodes, each with its own configuration")
	return d.run(ctx, labelCommand)
}

func (d *demo) rollGood(ctx context.Context) error {
	d.heading("11. A pool of the three: a good change goes by waves")
	d.row("  ", "pool.yaml. Its settle is 0s (15s by default), and the trials last 5 s (10m by default), so that nobody has to wait here:")
	_, _ = d.Write([]byte(poolYAML + shortSettle))
	if err := d.run(ctx, applyCommands...); err != nil {
		return err
	}
	begin := d.changed
	story, err := d.hear(ctx, statusCommand)
	if err != nil {
		return err
	}
	for _, wave := range []string{"wave 1 of 4", "wave 3 of 4", "wave 4 of 4"} { // each has a node on trial for seconds; the second one has none
		if !strings.Contains(story, wave) {
			return fmt.Errorf("expected: rollout status tells of %s; seen: it does not", wave)
		}
	}
	sources, err := d.awaitNodes(ctx, "all three have proven the revision", proven)
	if err != nil {
		return err
	}
	d.good = sources[0]
	d.measured(time.Since(begin).Seconds(), "one node after the other has proven it; it is lastKnownGood on all three")
	return d.configz(ctx, "maxPods", poolPods)
}

func (d *demo) rollDeadly(ctx context.Context) error {
	d.heading("12. A deadly change is stopped at its canary")
	nodes, err := d.nodes(ctx)
	if err != nil {
		return err
	}
	tebibytes, err := tebibytesFor(cluster.NodeName, nodes)
	if err != nil {
		return err
	}
	d.row("  ", fmt.Sprintf("It is valid, and kills the kubelet when it starts. A hash of node and content says who is the canary. With %dTi that is n1, "+
		"with the real kubelet; a fake one would not die.", tebibytes))
	before, err := d.kubelets("n2", "n3")
	if err != nil {
		return err
	}
	if err := d.run(ctx, deadlyCommand(tebibytes)); err != nil {
		return err
	}
	begin := d.changed
	story, err := d.hear(ctx, statusCommand+" || true")
	if err != nil {
		return err
	}
	if words := `error: pool "workers" stopped in wave 1: n1 Rejected: `; !strings.Contains(story, words) {
		return fmt.Errorf("expected: rollout status ends with %s…; seen: it does not", words)
	}
	d.measured(time.Since(begin).Seconds(), "the pool is stopped by the verdict of n1, in its kubelet's own words")
	if _, err := d.awaitNodes(ctx, "n2 and n3 were not touched, and n1 is back", sparedBut(cluster.NodeName, d.good)); err != nil {
		return err
	}
	after, err := d.kubelets("n2", "n3")
	if err != nil || after != before {
		return errors.Join(fmt.Errorf("expected: the kubelets of n2 and n3 run on; seen: pids %s were %s", after, before), err)
	}
	d.ok("n2 and n3 were assigned nothing, and their kubelets run on: pids " + after)
	return d.configz(ctx, "maxPods", poolPods)
}

func (d *demo) goBack(ctx context.Context) error {
	d.heading("13. Undo")
	d.row("  ", "The pool goes back to the revision that it has completed. Its nodes run that already, so nothing restarts:")
	before, err := d.kubelets("n1", "n2", "n3")
	if err != nil {
		return err
	}
	if err := d.run(ctx, undoCommands[:1]...); err != nil {
		return err
	}
	begin := d.changed
	if err := d.run(ctx, undoCommands[1:]...); err != nil {
		return err
	}
	if _, err := d.awaitNodes(ctx, "all three are at the good revision", proven); err != nil {
		return err
	}
	after, err := d.kubelets("n1", "n2", "n3")
	if err != nil || after != before {
		return errors.Join(fmt.Errorf("expected: no kubelet is restarted; seen: pids %s were %s", after, before), err)
	}
	d.measured(time.Since(begin).Seconds(), "all three are at the good revision again, and no kubelet was restarted")
	return nil
}
