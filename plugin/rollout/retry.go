package rollout

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func newRetry(f *cmdutil.Factory) *cobra.Command {
	o := &retryOptions{steerOptions{Factory: f, did: "retried"}}
	o.change = o.retry
	return o.steering(&cobra.Command{
		Use:   "retry POOL",
		Short: "Try a stopped revision again",
		Long: `Try the revision that the pool is at again, from its first wave: spec.rollout.retry gets a word that the pool has not heard yet. A revision that
was stopped is not assigned again otherwise, not even when the same content is applied again. Stops of other revisions stay. No kubelet that runs the
revision already is restarted.`,
		Example: "  kubectl kubelet rollout retry workers",
	})
}

// retryOptions are the flags of rollout retry.
type retryOptions struct{ steerOptions }

// retry sets a retry value that the pool has not seen yet.
func (o *retryOptions) retry(p pool, say notes) (map[string]any, error) {
	if t := p.Status.Target; t != nil {
		if stop := p.Stopped(); stop != nil {
			say("%s: tries %s again, which was stopped: %s", p.Name, t.Text(), view.StopText(*stop))
		} else {
			say("%s: %s is not stopped; it goes through its waves again", p.Name, t.Text())
		}
	}
	if pin := p.Spec.Rollout.Pin; pin != nil {
		say("warning: pool %s is pinned to %s, so a stop of another revision stays; kubectl kubelet rollout unpin %s", p.Name, pin.Name().Text(), p.Name)
	}
	say.managers(p, "retry")
	return inRollout(map[string]any{"retry": freshWord(o.Factory, p)}), nil
}

// freshWord returns a value that the pool has not seen: the time.
func freshWord(f *cmdutil.Factory, p pool) string {
	word := f.Now().UTC().Format("20060102T150405.000Z")
	fresh := word
	for i := 2; fresh == p.Spec.Rollout.Retry || slices.Contains(p.Status.Retries, fresh); i++ {
		fresh = fmt.Sprintf("%s-%d", word, i)
	}
	return fresh
}
