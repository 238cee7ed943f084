package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
)

const (
	lookInterval = 500 * time.Millisecond
	// failingGrace is how long a node may say that it cannot get a ConfigMap before that counts.
	failingGrace = 10 * time.Second

	activeTimeout = 5 * time.Minute
	goodTimeout   = 20 * time.Minute // the trial lasts 10
)

// waitOptions are the flags of the commands that wait for nodes.
type waitOptions struct {
	wait    bool
	until   string        // active or good
	timeout time.Duration // 0: by until
	answer  time.Duration // how long a node without a supervisor is waited for
}

func (w *waitOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&w.wait, "wait", true, "wait until the node runs it, or says why not")
	flags.StringVar(&w.until, "until", "active", "what to wait for: active (it runs), or good (it passed its trial)")
	flags.DurationVar(&w.timeout, "timeout", 0, "how long to wait for a node; default 5m, with --until=good 20m")
	flags.DurationVar(&w.answer, "answer-timeout", 30*time.Second, "how long to wait for a sign of a supervisor on a node that has shown none")
}

func (w *waitOptions) complete() error {
	switch {
	case w.until != "active" && w.until != "good":
		return fmt.Errorf("--until=%s is not known; give active or good", w.until)
	case w.timeout < 0 || w.answer < 0:
		return errors.New("a timeout cannot be negative")
	case w.timeout == 0 && w.until == "good":
		w.timeout = goodTimeout
	case w.timeout == 0:
		w.timeout = activeTimeout
	}
	return nil
}

// await looks at a Node until it has reached the goal, and tells each change on the way. The error has the node's words.
func (s *session) await(ctx context.Context, client kubernetes.Interface, name string, g goal, w waitOptions) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	begin, failingSince, said := time.Now(), time.Time{}, ""
	for {
		v, err := getNode(ctx, client, name)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return err
		}
		if err == nil {
			verdict, words := g.judge(v)
			if words != said && verdict != failed { // the error tells that
				s.note("%s: %s", name, words)
			}
			said = words
			if verdict != failing {
				failingSince = time.Time{}
			} else if failingSince.IsZero() {
				failingSince = time.Now()
			}
			switch {
			case verdict == reached:
				return nil
			case verdict == failed:
				return fmt.Errorf("node %s: %s", name, words)
			case verdict == failing && time.Since(failingSince) >= failingGrace:
				return fmt.Errorf("node %s: %s (the node goes on trying by itself)", name, words)
			case !v.supervised && time.Since(begin) >= w.answer && g.wanted.local():
				s.note("%s: no supervisor has written a status on it within %s, so nobody followed what was assigned", name, w.answer)
				return nil
			case !v.supervised && time.Since(begin) >= w.answer:
				return noSupervisor(v, w.answer)
			case g.before != nil && sameCondition(v.condition, *g.before) && time.Since(begin) >= w.answer:
				return fmt.Errorf("node %s says the same as before: %s: %s", name, printable(v.condition.Reason), v.words())
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return s.notInTime(ctx, name, said, w.timeout, err)
		}
	}
}

// noSupervisor says that nobody will answer.
func noSupervisor(v nodeView, after time.Duration) error {
	remedy := "run its kubelet under kubelet-supervisor; the assignment stands and is followed then, and kubectl kubelet reset " + v.Name + " removes it"
	if !v.ready() {
		remedy = "the node is not Ready, see to that first; else " + remedy
	}
	return fmt.Errorf("node %s has no supervisor: none has written a status on it within %s; %s", v.Name, after, remedy)
}

func (s *session) notInTime(ctx context.Context, name, said string, timeout time.Duration, err error) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("node %s: stopped waiting (what was asked of it stands); it %s", name, said)
	}
	if err != nil && said == "" {
		return fmt.Errorf("node %s: not within %s: %w", name, timeout, err)
	}
	return fmt.Errorf("node %s: not within %s; last seen: %s; what was asked of it stands; kubectl kubelet doctor %s looks for the reason", name, timeout, said, name)
}
