//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// What an API server gives those who use it, by its minor version.
const (
	hasPolicies    = 30 // admissionregistration.k8s.io/v1 has ValidatingAdmissionPolicy
	checksCRDRules = 25 // x-kubernetes-validations of a CustomResourceDefinition
	hidesNodes     = 32 // the Node authorizer lets a node read its own Node and pods, and no others

	oldestBehind = 3 // a kubelet may be so many minor versions older than its API server
)

// measureServers tries the supervisor, the plugin and the controller with each API server that is among the parts.
func measureServers(ctx context.Context, o options) (*Result, error) {
	for _, file := range []string{o.Plugin, o.Controller} {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("looking for what is tried (make builds it): %w", err)
		}
	}
	m := newResult(o, "kube-apiserver, kubelet, etcd and containerd")
	parts := os.Getenv("KUBELET_SUPERVISOR_PARTS")
	kubelets := versionsAmong(parts, "kubelet")
	for _, server := range versionsAmong(parts, "kube-apiserver") {
		if o.Only != "" && server != o.Only {
			continue
		}
		kubelet, err := kubeletFor(server, kubelets)
		if err != nil {
			return nil, err
		}
		k, err := tryServer(ctx, o, server, kubelet)
		if err != nil {
			return nil, fmt.Errorf("kube-apiserver %s: %w", server, err)
		}
		m.Servers = append(m.Servers, k)
	}
	if len(m.Servers) == 0 {
		return nil, errors.New("there is no kube-apiserver among the parts (KUBELET_SUPERVISOR_PARTS); make matrix builds them")
	}
	return m, nil
}

// kubeletFor gives the newest kubelet that Kubernetes supports with an API server: none that is newer, and none that is much older.
func kubeletFor(server string, kubelets []string) (string, error) {
	for _, kubelet := range slices.Backward(kubelets) {
		if behind := minorOf(server) - minorOf(kubelet); behind >= 0 && behind <= oldestBehind {
			return kubelet, nil
		}
	}
	return "", fmt.Errorf("no kubelet among %q may be used with kube-apiserver %s; test/parts/kubelets/build.sh builds others", kubelets, server)
}

// minorOf is 36 for 1.36.3.
func minorOf(version string) int { return numbers(version)[1] }

// tryServer goes through what a person does in a new cluster, in that order.
func tryServer(ctx context.Context, o options, server, kubelet string) (*kubeletSeen, error) {
	k := &kubeletSeen{Version: kubelet, APIServer: server}
	_, err := onCluster(ctx, o, cluster.Options{APIServer: server, Kubelet: kubelet}, "", func(ctx context.Context, b *bench) error {
		return b.watched(ctx, func() error {
			s := &newcomer{bench: b, minor: minorOf(server)}
			for _, t := range s.tries() {
				k.add(s.try(ctx, t))
			}
			_, _ = fmt.Fprintf(o.Log, "kube-apiserver %s with kubelet %s: %s\n", server, kubelet, k.Summary())
			return context.Cause(ctx)
		})
	})
	return k, err
}

// A try is one thing that has to work. It gives what fits into a cell of a table, and what was seen.
type try struct {
	name string
	do   func(context.Context) (brief, words string, err error)
}

// A newcomer uses a cluster in which nothing was installed before.
type newcomer struct {
	*bench
	minor      int // of the API server
	supervisor *process
}

// try gives the step of a try. A later one is tried whatever became of it, and says itself what it lacks.
func (s *newcomer) try(ctx context.Context, t try) *Step {
	begin := time.Now()
	brief, words, err := t.do(ctx)
	step := &Step{Part: serverPart, Name: t.name, Works: err == nil, Brief: brief, Took: milliseconds(time.Since(begin))}
	if err != nil {
		words = err.Error()
	}
	step.Words = oneLine(strings.ReplaceAll(cmp.Or(words, brief), s.cluster.Folder, "FOLDER"))
	_, _ = fmt.Fprintf(s.Log, "  %s: %t (%s) %s\n", t.name, step.Works, step.Brief, step.Words)
	return step
}

func (s *newcomer) tries() []try {
	return []try{
		{"install", s.install},
		{"rights of the node", s.rights},
		{"an assignment: active", s.assignment},
		{"a pool: rolled out", s.pool},
		{"an invalid pool", s.invalidPool},
		{"doctor", s.doctor},
	}
}

// newestMinor is that of the newest Kubernetes that this repository knows.
const newestMinor = 37

// NotTried names the minor versions between the oldest that was tried and the newest that there is: of API servers, or of kubelets.
func (r *Result) NotTried() string {
	seen, version := r.Kubelets, func(k *kubeletSeen) string { return k.Version }
	if len(r.Servers) > 0 {
		seen, version = r.Servers, func(k *kubeletSeen) string { return k.APIServer }
	}
	var names []string
	for minor := minorOf(version(seen[0])); minor <= newestMinor; minor++ {
		if !slices.ContainsFunc(seen, func(k *kubeletSeen) bool { return minorOf(version(k)) == minor }) {
			names = append(names, fmt.Sprintf("1.%d", minor))
		}
	}
	return strings.Join(names, ", ")
}
