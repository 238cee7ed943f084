package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

const (
	lookInterval = 500 * time.Millisecond
	// failingGrace is how long a node may fail to get a ConfigMap before the command fails.
	failingGrace = 10 * time.Second

	activeTimeout = 5 * time.Minute
	goodTimeout   = 20 * time.Minute // the default trial lasts 10
)

// waitOptions are the flags of the commands that wait for nodes.
type waitOptions struct {
	wait    bool
	until   string        // active or good
	timeout time.Duration // 0: depends on until
	answer  time.Duration // how long to wait for a node without a supervisor
}

func (w *waitOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&w.wait, "wait", true, "wait until the node runs it, or says why not")
	flags.StringVar(&w.until, "until", "active", "what to wait for: active (it runs), or good (it passed its trial)")
	flags.DurationVar(&w.timeout, "timeout", 0, "how long to wait for a node; default 5m, with --until=good 20m")
	flags.DurationVar(&w.answer, "answer-timeout", 30*time.Second, "how long to wait for a sign of a supervisor on a node that has shown none")
}

// complete sets the default timeout.
func (w *waitOptions) complete() {
	switch {
	case w.timeout == 0 && w.until == "good":
		w.timeout = goodTimeout
	case w.timeout == 0:
		w.timeout = activeTimeout
	}
}

func (w *waitOptions) validate() error {
	switch {
	case w.until != "active" && w.until != "good":
		return fmt.Errorf("--until=%s is not known; give active or good", w.until)
	case w.timeout < 0 || w.answer < 0:
		return errors.New("a timeout cannot be negative")
	}
	return nil
}

// await follows a Node until it has met the condition, and prints each change. The error has the node's message.
func await(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, name string, g waitCondition, w waitOptions) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	news := make(chan sighting)
	go followNode(ctx, client, name, news)
	defer func() { // it ends before the command continues
		cancel()
		for range news {
		}
	}()
	ticker := time.NewTicker(lookInterval) // for conditions that depend on time
	defer ticker.Stop()
	a := attempt{Factory: f, name: name, until: g, wait: w, begin: time.Now()}
	for {
		select {
		case seen, more := <-news:
			if !more {
				return notInTime(ctx, name, a.said, w.timeout, a.err)
			}
			if apierrors.IsNotFound(seen.err) || apierrors.IsForbidden(seen.err) {
				return seen.err
			}
			if a.err = seen.err; seen.err == nil {
				a.until.learn(ctx, client, seen.view)
				a.view = &seen.view
			}
		case <-ticker.C:
		case <-ctx.Done():
			return notInTime(ctx, name, a.said, w.timeout, a.err)
		}
		if a.view != nil {
			if done, err := a.judge(); done {
				return err
			}
		}
	}
}

// An attempt is the wait for one node.
type attempt struct {
	*cmdutil.Factory
	name         string
	until        waitCondition
	wait         waitOptions
	begin        time.Time
	view         *view.Node // as last seen
	err          error      // why the node has not been read since
	said         string
	failingSince time.Time
}

// judge prints what is new, and reports whether the wait is over.
func (a *attempt) judge() (done bool, err error) {
	v := *a.view
	verdict, words := a.until.judge(v)
	if words != a.said && verdict != failed { // the error has the same text
		a.Note("%s: %s", a.name, words)
	}
	a.said = words
	if verdict != failing {
		a.failingSince = time.Time{}
	} else if a.failingSince.IsZero() {
		a.failingSince = time.Now()
	}
	unanswered := time.Since(a.begin) >= a.wait.answer
	switch {
	case verdict == reached:
		return true, nil
	case verdict == failed:
		return true, fmt.Errorf("node %s: %s", a.name, words)
	case verdict == failing && time.Since(a.failingSince) >= failingGrace:
		return true, fmt.Errorf("node %s: %s (the node tries again automatically)", a.name, words)
	case !v.Says.Supervised && unanswered && a.until.wanted.IsLocal():
		a.Note("%s: no supervisor has written a status on it within %s, so no supervisor has followed the assignment", a.name, a.wait.answer)
		return true, nil
	case !v.Says.Supervised && unanswered:
		return true, noSupervisor(v, a.wait.answer)
	case a.until.retry != "" && v.Says.Status.Retry != a.until.retry && unanswered:
		return true, fmt.Errorf("node %s has not heard that it is to try again; it says %s", a.name, v.ReasonAndMessage())
	}
	return false, nil
}

// noSupervisor returns the error for a node that no supervisor answers for.
func noSupervisor(v view.Node, after time.Duration) error {
	remedy := "run its kubelet under kubelet-supervisor; the assignment stands and is followed then, and kubectl kubelet reset " + v.Name + " removes it"
	if !v.Ready() {
		remedy = "the node is not Ready, see to that first; else " + remedy
	}
	return fmt.Errorf("node %s has no supervisor: none has written a status on it within %s; %s", v.Name, after, remedy)
}

func notInTime(ctx context.Context, name, said string, timeout time.Duration, err error) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("node %s: stopped waiting (what was asked of it stands); it %s", name, said)
	}
	if err != nil && said == "" {
		return fmt.Errorf("node %s: not within %s: %w", name, timeout, err)
	}
	return fmt.Errorf("node %s: not within %s; last seen: %s; what was asked of it stands; kubectl kubelet doctor %s looks for the reason", name, timeout, said, name)
}
