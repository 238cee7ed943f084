//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// The API servers that there are; the first with which a kubelet becomes Ready is taken.
var apiServers = []string{"1.36.3", "1.24.17"}

// measureMatrix tries the supervisor with each kubelet that is among the parts.
func measureMatrix(ctx context.Context, o options) (*Result, error) {
	m := newResult(o, "kubelet, kube-apiserver, etcd and containerd")
	for _, version := range versionsAmong(os.Getenv("KUBELET_SUPERVISOR_PARTS"), "kubelet") {
		if o.Only != "" && version != o.Only {
			continue
		}
		k, err := tryKubelet(ctx, o, version)
		if err != nil {
			return nil, fmt.Errorf("kubelet %s: %w", version, err)
		}
		m.Kubelets = append(m.Kubelets, k)
	}
	if len(m.Kubelets) == 0 {
		return nil, errors.New("there is no kubelet among the parts (KUBELET_SUPERVISOR_PARTS); make matrix builds them")
	}
	return m, nil
}

// versionsAmong gives the versions of a program in a folder, the oldest first.
func versionsAmong(parts, program string) (versions []string) {
	files, _ := filepath.Glob(filepath.Join(parts, program+"-[0-9]*"))
	for _, file := range files {
		versions = append(versions, strings.TrimPrefix(filepath.Base(file), program+"-"))
	}
	slices.SortFunc(versions, func(a, b string) int { return slices.Compare(numbers(a), numbers(b)) })
	return versions
}

func numbers(version string) (numbers []int) {
	for word := range strings.SplitSeq(version, ".") {
		number, _ := strconv.Atoi(word)
		numbers = append(numbers, number)
	}
	return numbers
}

// kubeletSeen is what was seen of one kubelet.
type kubeletSeen struct {
	Version   string   `json:"version"`
	APIServer string   `json:"apiServer"` // "": it became Ready with none
	Not       []string `json:"not"`       // with which it did not, and why
	Steps     []*Step  `json:"steps"`
}

// A Step is one thing that has to work, in the order in which they were tried.
type Step struct {
	Part  string  `json:"part"` // preflightPart, jobPart or serverPart
	Name  string  `json:"name"` // with the part the step's identity
	Works bool    `json:"works"`
	Brief string  `json:"brief"` // for a cell of a table
	Words string  `json:"words"` // what was seen, in the supervisor's and the kubelet's own words
	Took  float64 `json:"took"`  // ms
}

const (
	preflightPart = "pre-flight"
	jobPart       = "node"
	serverPart    = "API server"
)

func (k *kubeletSeen) add(s *Step) { k.Steps = append(k.Steps, s) }

// tryKubelet tries one kubelet with the first API server that it becomes Ready with.
func tryKubelet(ctx context.Context, o options, version string) (*kubeletSeen, error) {
	k := &kubeletSeen{Version: version}
	for i, server := range apiServers {
		last := i == len(apiServers)-1
		because, err := tryWith(ctx, o, k, server, last)
		if err != nil || because == nil {
			return k, err
		}
		k.Not = append(k.Not, fmt.Sprintf("with kube-apiserver %s: %s", server, oneLine(because.Error())))
	}
	return k, nil
}

// tryWith gives because when the kubelet alone did not become Ready with this API server; then, unless it is the last, nothing is
// tried.
func tryWith(ctx context.Context, o options, k *kubeletSeen, server string, last bool) (because, err error) {
	try := func(b *bench) error {
		because = b.readyAlone(ctx)
		if ctx.Err() != nil || because != nil && !last {
			return context.Cause(ctx)
		}
		b.tryPreflight(ctx, k)
		if because == nil {
			k.APIServer = server
			b.tryJob(ctx, k)
		}
		_, _ = fmt.Fprintf(o.Log, "kubelet %s with kube-apiserver %s: %s\n", k.Version, cmp.Or(k.APIServer, "none"), k.Summary())
		return context.Cause(ctx)
	}
	_, err = onCluster(ctx, o, cluster.Options{APIServer: server, Kubelet: k.Version}, "", func(ctx context.Context, b *bench) error {
		return b.watched(ctx, func() error { return try(b) })
	})
	return because, err
}

// readyAlone tells whether the kubelet becomes Ready without a supervisor.
func (b *bench) readyAlone(ctx context.Context) error {
	kubelet, err := b.kubeletProcess()
	if err != nil {
		return err
	}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // ends with the kubelet, which is ended below
		<-kubelet.Done
		cancel(errors.New("the kubelet ended by itself"))
	}()
	if err := b.node.awaitNode(waiting, "that it is ready", func(v view) bool { return v.ready }); err != nil {
		return errors.Join(fmt.Errorf("%w; its last line: %s", err, lastLine(kubelet.LastWords())), b.end(kubelet))
	}
	return b.end(kubelet)
}

// Summary names what does not work.
func (k *kubeletSeen) Summary() string {
	var not []string
	for _, s := range k.Steps {
		if !s.Works {
			not = append(not, s.Name)
		}
	}
	if len(not) == 0 {
		return fmt.Sprintf("all %d steps work", len(k.Steps))
	}
	return fmt.Sprintf("%d of %d steps do not work: %s", len(not), len(k.Steps), strings.Join(not, "; "))
}

func lastLine(text string) string { return text[strings.LastIndex(text, "\n")+1:] }

// Steps names a part's steps, in their order.
func (r *Result) Steps(part string) (names []string) {
	for _, k := range slices.Concat(r.Kubelets, r.Servers) {
		for _, s := range k.Steps {
			if s.Part == part && !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// Cells gives a step of all kubelets; nil where it was not tried.
func (r *Result) Cells(part, name string) (steps []*Step) {
	for _, k := range r.Kubelets {
		steps = append(steps, k.Step(part, name))
	}
	return steps
}

// Step is nil where it was not tried.
func (k *kubeletSeen) Step(part, name string) *Step {
	at := slices.IndexFunc(k.Steps, func(s *Step) bool { return s.Part == part && s.Name == name })
	if at < 0 {
		return nil
	}
	return k.Steps[at]
}

// oneLine is at most as long as a condition's message, about.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 1100 {
		text = strings.ToValidUTF8(text[:1100], "") + "…"
	}
	return text
}
