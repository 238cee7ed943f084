//go:build linux

// Command watch looks at the mixin as an operator would (package dashboard), while real supervisors and controllers go through some minutes of good
// and bad changes.
//
// What is real: etcd, kube-apiserver, the kubelet of n1, all supervisors and both controllers, the textfile collector of Debian's
// node_exporter, Debian's Prometheus with the rules of the mixin. What is not: the kubelets of the other nodes are fakes.
//
// It promises that it fails where a step is not seen, where a rule cannot be evaluated, or where a query of the dashboard was refused or never
// had an answer; and that it leaves nothing on the machine. `make watch` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/watch/dashboard"
)

type options struct {
	mixin      string // folder with alerts.yaml, rules.yaml and dashboards/
	prometheus string // folder with prometheus and prometheus-node-exporter
	picture    string // to be written
	page       string // to be written
	commit     string
}

func main() {
	var o options
	flag.StringVar(&o.mixin, "mixin", "", "the rendered mixin")
	flag.StringVar(&o.prometheus, "prometheus", "", "the folder that test/parts/prometheus.sh names")
	flag.StringVar(&o.picture, "picture", "dashboard.png", "the picture to write")
	flag.StringVar(&o.page, "page", "dashboard.md", "the page to write")
	flag.StringVar(&o.commit, "commit", "unknown", "of what is looked at, for the page")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := watch(ctx, o); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "FAILED:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// watch brings everything up, lets it happen, and looks.
func watch(ctx context.Context, o options) (err error) {
	c, err := cluster.Up(ctx, cluster.Options{Name: "watch", Log: os.Stdout})
	if err != nil {
		return err
	}
	defer func() {
		if left := c.Down(); err == nil {
			err = left
		}
	}()
	s := &stage{options: o, cluster: c, dashboard: dashboard.New(c, dashboard.Options{Programs: o.prometheus, Mixin: o.mixin, Every: readEvery, Lasts: time.Hour})}
	defer s.stop()
	if err := s.build(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := s.story(ctx); err != nil {
		return err
	}
	l, err := s.dashboard.Look(ctx, began, time.Now())
	if err != nil {
		return err
	}
	if err := errors.Join(l.Unanswered(), l.Draw(o.picture)); err != nil {
		return err
	}
	return write(o, l, s.steps)
}
