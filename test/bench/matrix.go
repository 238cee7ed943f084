package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// The API servers that there are; the first with which a kubelet becomes Ready is taken.
var apiServers = []string{"1.36.3", "1.24.17"}

// matrixMain tries the supervisor with each kubelet that is among the parts: `make matrix`.
func matrixMain(ctx context.Context, arguments []string) error {
	o := options{Log: os.Stderr}
	var document, results, only string
	flags := flag.NewFlagSet("bench matrix", flag.ExitOnError)
	flags.StringVar(&document, "document", "", "write what works into this Markdown file")
	flags.StringVar(&results, "json", "", "write it into this file")
	flags.StringVar(&only, "only", "", "one version alone")
	flags.StringVar(&o.Binary, "binary", besideOwn("kubelet-supervisor"), "the supervisor")
	flags.StringVar(&o.Commit, "commit", "unknown", "what was built, for the document")
	_ = flags.Parse(arguments) // exits on errors
	if _, err := os.Stat(o.Binary); err != nil {
		return fmt.Errorf("looking for what is tried (make build): %w", err)
	}
	m := &matrix{Commit: o.Commit, Date: time.Now().UTC().Truncate(time.Second), Machine: append(machineWith("kubelet, kube-apiserver, etcd and containerd"), cluster.KubeletOOMScore().String())}
	for _, version := range kubeletsAmong(os.Getenv("KUBELET_SUPERVISOR_PARTS")) {
		if only != "" && version != only {
			continue
		}
		k, err := tryKubelet(ctx, o, version)
		if err != nil {
			return fmt.Errorf("kubelet %s: %w", version, err)
		}
		m.Kubelets = append(m.Kubelets, k)
	}
	if len(m.Kubelets) == 0 {
		return errors.New("there is no kubelet among the parts (KUBELET_SUPERVISOR_PARTS); make matrix builds them")
	}
	return m.write(document, results)
}

// kubeletsAmong gives the versions of the kubelets in a folder, the oldest first.
func kubeletsAmong(parts string) (versions []string) {
	files, _ := filepath.Glob(filepath.Join(parts, "kubelet-[0-9]*"))
	for _, file := range files {
		versions = append(versions, strings.TrimPrefix(filepath.Base(file), "kubelet-"))
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

// A matrix is what was seen of each kubelet; its JSON is the result file.
type matrix struct {
	Commit   string         `json:"commit"`
	Date     time.Time      `json:"date"`
	Machine  []string       `json:"machine"`
	Kubelets []*kubeletSeen `json:"kubelets"`
}

type kubeletSeen struct {
	Version   string   `json:"version"`
	APIServer string   `json:"apiServer"` // "": it became Ready with none
	Not       []string `json:"not"`       // with which it did not, and why
	Steps     []*step  `json:"steps"`
}

// A step is one thing that has to work, in the order in which they were tried.
type step struct {
	Part  string  `json:"part"` // preflightPart or jobPart
	Name  string  `json:"name"` // with the part the step's identity
	Works bool    `json:"works"`
	Brief string  `json:"brief"` // for a cell of a table
	Words string  `json:"words"` // what was seen, in the supervisor's and the kubelet's own words
	Took  float64 `json:"took"`  // ms
}

const (
	preflightPart = "pre-flight"
	jobPart       = "node"
)

func (k *kubeletSeen) add(s *step) { k.Steps = append(k.Steps, s) }

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
	c, err := cluster.Up(ctx, cluster.Options{Name: fmt.Sprintf("matrix-%d", os.Getpid()), APIServer: server, Kubelet: k.Version, Log: o.Log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Down()) }()
	b := &bench{options: o, cluster: c, node: &node{cluster: c}}
	defer func() { err = errors.Join(err, b.stopAll()) }()
	watching, stop := context.WithCancel(ctx)
	var wait func()
	if b.health, wait, err = watchHealth(watching, c); err != nil {
		stop()
		return nil, err
	}
	defer func() { stop(); wait() }()
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	because = b.readyAlone(ctx)
	if ctx.Err() != nil || because != nil && !last {
		return because, context.Cause(ctx)
	}
	b.tryPreflight(ctx, k)
	if because == nil {
		k.APIServer = server
		b.tryJob(ctx, k)
	}
	_, _ = fmt.Fprintf(o.Log, "kubelet %s with kube-apiserver %s: %s\n", k.Version, cmp.Or(k.APIServer, "none"), k.summary())
	return because, context.Cause(ctx)
}

// readyAlone tells whether the kubelet becomes Ready without a supervisor.
func (b *bench) readyAlone(ctx context.Context) error {
	kubelet, err := b.kubeletProcess()
	if err != nil {
		return err
	}
	ready := make(chan error, 1)
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with waiting at the latest
		ready <- b.node.awaitNode(waiting, "that it is ready", func(v view) bool { return v.ready })
	}()
	select {
	case err = <-ready:
	case <-kubelet.done:
		cancel()
		err = errors.Join(errors.New("the kubelet ended by itself"), <-ready)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%w; its last line: %s", err, lastLine(kubelet)), b.end(kubelet))
	}
	return b.end(kubelet)
}

func lastLine(p *process) string {
	text, _ := p.logFrom(max(0, p.logSize()-2000))
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func (k *kubeletSeen) summary() string {
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
