//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	operator     = "alice"
	assignedPods = 61
	pooledPods   = 62
	poolLabel    = "kubelet-supervisor.io/pool-of"
	poolYAML     = `apiVersion: kubelet-supervisor.io/v1alpha1
kind: KubeletPool
metadata: {name: %s}
spec:
  selector: {matchLabels: {%s}}
  rollout: {settle: 0s}
  layers:
  - {name: density, inline: {maxPods: %d}}
`
)

// kubelet runs the plugin as the administrator, and gives all that it says.
func (s *newcomer) kubelet(ctx context.Context, arguments ...string) (string, error) {
	words := s.cluster.Command(s.Plugin, append([]string{"--kubeconfig=" + filepath.Join(s.cluster.Folder, "admin.kubeconfig"),
		"--cache-dir=" + filepath.Join(s.cluster.Folder, "kubectl-cache")}, arguments...)...).Args
	said, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl kubelet %s: %w: %s", strings.Join(arguments, " "), err, said)
	}
	return string(said), err
}

// install installs all but the controller's Deployment, which nobody would run here.
func (s *newcomer) install(ctx context.Context) (brief, words string, err error) {
	said, err := s.kubelet(ctx, "install", "--controller=external", "--yes")
	if err != nil {
		return "", "", err
	}
	if _, err := s.cluster.Kubectl(ctx, "wait", "--for=condition=Established", "crd/kubeletpools.kubelet-supervisor.io", "--timeout=60s"); err != nil {
		return "", "", err
	}
	objects, policies := 0, 0
	for line := range strings.Lines(said) {
		if !strings.HasSuffix(line, " installed\n") {
			words += line
			continue
		}
		objects++
		if strings.HasPrefix(line, "validatingadmissionpolicy.") {
			policies++
		}
	}
	brief = fmt.Sprintf("%d objects", objects)
	if policies == 0 {
		brief += ", **no policies**"
	}
	if want := len(deploy.PoolPolicies()) + 2; s.minor >= hasPolicies && policies != want {
		return brief, words, fmt.Errorf("%d policies were installed, and there are %d: %s", policies, want, words)
	}
	return brief, words, nil
}

var pushedName = regexp.MustCompile(`(?m)^configmap/(\S+) created$`)

// assignment is that of an operator, who has the roles that docs/why/security.md binds.
func (s *newcomer) assignment(ctx context.Context) (brief, words string, err error) {
	for _, words := range [][]string{
		{"create", "clusterrolebinding", "assigns", "--clusterrole=" + deploy.OperatorRole, "--user=" + operator},
		{"create", "rolebinding", "assigns", "-n", deploy.Namespace, "--role=" + deploy.OperatorRole, "--user=" + operator},
	} {
		if _, err := s.cluster.Kubectl(ctx, words...); err != nil {
			return "", "", err
		}
	}
	pushed, err := s.kubelet(ctx, "push", "workers", fmt.Sprintf("--set=maxPods=%d", assignedPods), "--as="+operator)
	if err != nil {
		return "", "", err
	}
	name := pushedName.FindStringSubmatch(pushed)
	if name == nil {
		return "", "", fmt.Errorf("push does not say what it made: %s", pushed)
	}
	if _, err := s.kubelet(ctx, "assign", cluster.NodeName, "--config="+name[1], "--yes", "--until=good", "--as="+operator); err != nil {
		return "", "", fmt.Errorf("%w%s", err, s.lastWords())
	}
	return s.seen(ctx, assignedPods)
}

// seen is what the Node says when its kubelet runs with so many maxPods.
func (s *newcomer) seen(ctx context.Context, pods int) (brief, words string, err error) {
	if err := s.runsWith(ctx, pods); err != nil {
		return "", "", err
	}
	v, err := s.node.look(ctx)
	if err == nil && v.reason != "Active" {
		err = fmt.Errorf("the Node says %s: %s", v.reason, v.message)
	}
	return "", fmt.Sprintf("%s: %s", v.reason, v.message), err
}

// pool gives the node to a pool of one layer, which the controller rolls out with the rights of its ServiceAccount.
func (s *newcomer) pool(ctx context.Context) (brief, words string, err error) {
	if err := s.startController(); err != nil {
		return "", "", err
	}
	if _, err := s.cluster.Kubectl(ctx, "label", "node", cluster.NodeName, poolLabel+"=workers"); err != nil {
		return "", "", err
	}
	if err := s.applyPool(ctx, "workers", poolLabel+": workers", pooledPods); err != nil {
		return "", "", err
	}
	// A person has assigned the node, so the pool leaves it alone.
	if _, err := s.kubelet(ctx, "rollout", "adopt", cluster.NodeName); err != nil {
		return "", "", err
	}
	story, err := s.kubelet(ctx, "rollout", "status", "workers", "--timeout="+patience.String())
	if err != nil {
		return "", "", fmt.Errorf("%w%s", err, s.lastWords())
	}
	_, words, err = s.seen(ctx, pooledPods)
	return "", story + " " + words, err
}

// startController starts the controller as the user that it is outside of the cluster.
func (s *newcomer) startController() error {
	identity, err := s.cluster.IdentityConfig(deploy.ControllerUser)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(s.cluster.Folder, "controller.kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig, identity.Host, identity); err != nil {
		return err
	}
	_, err = s.start("controller", []string{s.Controller, "--kubeconfig=" + kubeconfig, "--health-address=0", "--metrics-address=0"})
	return err
}

func (s *newcomer) applyPool(ctx context.Context, name, selector string, pods int) error {
	file := filepath.Join(s.cluster.Folder, name+".yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, poolYAML, name, selector, pods), 0o600); err != nil {
		return err
	}
	_, err := s.cluster.Kubectl(ctx, "apply", "--server-side", "-f", file)
	return err
}

const invalidSpec = "an empty selector would take every node"

// invalidPool would take all nodes. The API server refuses it by the rules of the CRD, or the controller does nothing with it, and says why.
func (s *newcomer) invalidPool(ctx context.Context) (brief, words string, err error) {
	refusal := s.applyPool(ctx, "everything", "", assignedPods)
	if s.minor >= checksCRDRules {
		if refusal == nil || !strings.Contains(refusal.Error(), invalidSpec) {
			return "", "", fmt.Errorf("the API server does not refuse it by the rule of its selector: %w", errors.Join(refusal))
		}
		return "refused", refusal.Error(), nil
	}
	if refusal != nil {
		return "", "", refusal
	}
	err = await(ctx, "the controller says what is invalid", func() error {
		words, err = s.cluster.Kubectl(ctx, "get", "kubeletpool", "everything", "-o",
			`jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}; {end}`)
		if err == nil && !strings.Contains(words, "InvalidSpec: ") {
			err = fmt.Errorf("it says %q", words)
		}
		return err
	})
	if err != nil {
		return "", "", err
	}
	_, err = s.cluster.Kubectl(ctx, "delete", "kubeletpool", "everything")
	return "**taken**, and held by the controller", words, err
}

// doctor finds nothing wrong and leaves nothing open, except the policies where the API server has none.
func (s *newcomer) doctor(ctx context.Context) (brief, words string, err error) {
	said, err := s.kubelet(ctx, "doctor", cluster.NodeName)
	if err != nil {
		return "", said, err
	}
	fine, without := 0, 0
	for line := range strings.Lines(said) {
		switch {
		case strings.HasPrefix(line, "ok "):
			fine++
		case s.minor < hasPolicies && strings.HasPrefix(line, "note ") && strings.Contains(line, "this API server has no admission policies"):
			without++
			words += line
		default:
			return "", "", fmt.Errorf("doctor says %s", line)
		}
	}
	if brief = fmt.Sprintf("%d × ok", fine); without > 0 {
		brief += fmt.Sprintf(", %d notes", without)
	}
	return brief, words, nil
}
