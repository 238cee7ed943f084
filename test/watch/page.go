//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/watch/dashboard"
)

// write writes the page with what was seen.
func write(o options, l *dashboard.Looked, steps []happened) error {
	var text bytes.Buffer
	say := func(format string, words ...any) { _, _ = fmt.Fprintf(&text, format+"\n", words...) }
	say("# The dashboard, looked at\n")
	say("`make watch` wrote this page and its picture; run it to have those of your machine. It needs root, and takes six minutes or so.\n")
	say("At %s, of commit %s, a Prometheus had read everybody every %s for %s. It had the rules of the [mixin](../howto/watch.md), and %d series of ours at the end.\n",
		l.End.UTC().Format("2006-01-02 15:04 UTC"), o.commit, readEvery, l.End.Sub(l.Began).Round(time.Second), l.Series)
	say(about)
	say("![each panel of the dashboard](%s)\n", filepath.Base(o.picture))
	say("## What happened\n\n| after | |\n|---|---|")
	for _, s := range steps {
		say("| %s | %s |", dashboard.Clock(s.at.Sub(l.Began)), s.words)
	}
	say("\n## What the queries answered\n\nA query that is refused, or never has an answer, fails the run.\n\n%s", l.Queries())
	say("## What the rules did\n\nMost alerts wait for longer than this run before they fire, so they are pending. %s", l.Rules())
	say(found)
	return os.WriteFile(o.page, text.Bytes(), 0o644) //nolint:gosec // anybody may read it
}

const about = `What is real: etcd, kube-apiserver, the kubelet of n1, five supervisors, two controllers, and Debian's Prometheus and node_exporter.
What is not:

- The kubelets of n2 to n5 are fakes. Trials last 20 s.
- kube-state-metrics is not to be had from the Go module proxy that was asked. Its one series is written from the Nodes, as its documentation has it.
- Grafana is neither in Debian 12 nor to be had as a Go module there, and what npm has of it is no server. So no Grafana has read the dashboard.
  Its queries were asked one by one, as Grafana would, and gnuplot drew the answers.
`

const found = `## What looking has changed

- A pool whose nodes are blocked, or late for a day, fired nothing, and neither did controllers of which none leads. Each has its alert now.
- Prometheus extrapolates: the dashboard said 2.02 rollbacks. The numbers at its top are whole ones now.
- 0.5 ms as the time of a decision means the smallest bucket: five nodes take less than that.
`
