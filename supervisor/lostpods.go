//go:build linux

package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

const (
	// lostAfter is how long a restarted kubelet is healthy until it has killed what it refuses, and said so.
	lostAfter = 30 * time.Second
	// A container that ends slowly is seen at the second look; an API server that is away for some minutes is waited for.
	lostLooks, lostTries = 2, 10
	// seenFor is how long it counts what a look has seen. What has ended since an older one may have ended long before the restart.
	seenFor = 10 * time.Minute
)

// lostPods finds the pods that a restart by choice has cost (rule 19): those that ran before it, and that the restarted kubelet has
// rejected; and static pods that it has ended.
type lostPods struct {
	mu     sync.Mutex
	begun  int           // looks at changes, numbered as they begin
	newest int           // the one that seen is of
	seen   sight         // of the newest look at a change that knew the pods
	seenAt time.Duration // of the steady clock
	owing  sight         // of those to be looked for once a kubelet is healthy again
	asking bool          // owing is not known yet: the pods are being read

	restarts int                // after which pods were looked for
	awaited  map[string]livePod // those that are looked for, and were not missed yet
	static   staticSight        // those among them that are static
	missed   []string           // names of those that were, after the newest restart
}

// A sight is the pods that run.
type sight struct {
	pods   map[string]livePod // by their uid, static ones by the id of their sandbox; nil: not known
	static staticSight
}

// A livePod is a pod that runs.
type livePod struct {
	name   string
	reason string // for which it was foreseen to be lost; "": it was not
}

// seenIn are the pods that the facts of a forecast have. Without the pods of the API nothing is known.
func (i inquiry) seenIn(facts forecast.Facts, f forecast.Forecast) sight {
	if facts.Pods == nil || facts.Then == nil {
		return sight{}
	}
	s := sight{runningOf(facts.Pods, forecast.ReadyUIDs(facts.Sandboxes)),
		staticSight{facts.StaticPods(), facts.Then, facts.Node, i.kubelet(facts.Then).RuntimeEndpoint}}
	for _, loss := range slices.Concat(f.Losses, f.Anyway) {
		if pod, runs := s.pods[loss.UID]; runs {
			s.pods[loss.UID] = livePod{pod.name, loss.Reason}
		}
	}
	for _, pod := range s.static.pods {
		s.pods[pod.Sandbox] = livePod{name: pod.Namespace + "/" + pod.Name}
	}
	return s
}

// begin numbers a look at a change.
func (p *lostPods) begin() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	return p.begun
}

// before takes what a look has seen, and when. One that comes after a newer one is too old. One that has got no answer has seen nothing.
func (p *lostPods) before(look int, seen sight, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if look < p.newest || seen.pods == nil {
		return
	}
	p.newest, p.seen, p.seenAt = look, seen, now
}

// runningOf are the pods that run, by their uid. ready are the uids of ready sandboxes.
func runningOf(pods []corev1.Pod, ready map[types.UID]bool) map[string]livePod {
	running := map[string]livePod{}
	for i := range pods {
		pod := &pods[i]
		if forecast.Runs(pod, ready) && pod.Annotations[corev1.MirrorPodAnnotationKey] == "" {
			running[string(pod.UID)] = livePod{name: pod.Namespace + "/" + pod.Name}
		}
	}
	return running
}

// compare is for the stop of a kubelet that follows a look. What a candidate costs that never gets healthy is seen with its fallback. It is
// false where no look knows what runs; then the pods have to be read now, and given to add.
func (p *lostPods) compare(now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owing, p.asking = p.seen, p.seen.pods == nil || now-p.seenAt > seenFor
	p.seen = sight{}
	if p.asking {
		p.owing = sight{}
	}
	return !p.asking
}

// add takes what ran at the stop of the kubelet: nil, where that cannot be known.
func (p *lostPods) add(pods []corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.asking: // the next kubelet is not healthy yet
		p.owing, p.asking = sight{pods: runningOf(pods, nil)}, false
	case p.awaited != nil:
		maps.Copy(p.awaited, runningOf(pods, nil))
	}
}

// take begins to look for what ran before a restart: it gives the restart's number, once, or 0. What an earlier restart has cost and is not
// known yet is looked for with it.
func (p *lostPods) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.owing.pods) == 0 && !p.asking {
		return 0
	}
	if p.awaited == nil {
		p.awaited = map[string]livePod{}
	}
	maps.Copy(p.awaited, p.owing.pods)
	p.static = p.owing.static
	p.owing, p.asking, p.missed = sight{}, false, nil
	p.restarts++
	return p.restarts
}

// awaits reports whether a pod is looked for.
func (p *lostPods) awaits(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, is := p.awaited[string(uid)]
	return is
}

// miss names the pods that ran before a restart and that the kubelet has rejected after it, and counts those that are news by their reason;
// none where nothing is, or another restart has followed. A pod that a person has deleted, that has succeeded, or that is evicted later, is
// no loss of the restart.
func (p *lostPods) miss(restart int, ends []forecast.End) (names []string, news map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if restart != p.restarts {
		return nil, nil
	}
	news = map[string]int{}
	for _, end := range ends {
		pod, ran := p.awaited[string(end.UID)]
		if !ran || !end.Rejected {
			continue
		}
		delete(p.awaited, string(end.UID))
		p.missed = append(p.missed, pod.name)
		news[cmp.Or(end.Reason, pod.reason)]++ // a kubelet forgets the reason where the containers exit with 0
	}
	if len(news) == 0 {
		return nil, nil
	}
	slices.Sort(p.missed)
	return slices.Clone(p.missed), news
}

// over reports whether the search after this restart is over: another restart has followed, or last ends it.
func (p *lostPods) over(restart int, last bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if restart == p.restarts && last {
		p.awaited = nil
	}
	return restart != p.restarts || last
}

// compareLost is for the stop of a kubelet that follows a look at a change. Where no look has known the pods, they are read during the
// stop: the kubelet that stops no longer rejects any, and the next one none yet.
func (f *foresight) compareLost(ctx context.Context) {
	if f.lost.compare(steadyTime()) {
		return
	}
	f.spawn(func() {
		ctx, cancel := context.WithTimeout(ctx, configsync.RequestTimeout)
		defer cancel()
		pods, err := f.readPods(ctx, func(forecast.End) {})
		if err != nil {
			f.Logger.Debug("which pods run before the restart is not known", zap.Error(err))
		}
		f.lost.add(pods)
	})
}

// observe begins to look for lost pods once a kubelet is healthy again.
func (f *foresight) observe(over context.Context, d *decision) {
	if _, is := d.event.(core.Healthy); !is {
		return
	}
	if restart := f.lost.take(); restart > 0 {
		f.spawn(func() { f.countLost(over, restart) })
	}
}

// countLost reports the pods that a restart has cost.
func (f *foresight) countLost(ctx context.Context, restart int) {
	for looks, tries := 0, 1; !f.lost.over(restart, looks == lostLooks || tries > lostTries); tries++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(f.lostAfter):
		}
		var ends []forecast.End
		pods, err := f.readPods(ctx, func(end forecast.End) {
			if f.lost.awaits(end.UID) { // a node may have hundreds of others
				ends = append(ends, end)
			}
		})
		if err != nil || pods == nil {
			f.Logger.Debug("whether pods were lost at the restart is not known", zap.Error(err))
			continue
		}
		ends = append(ends, f.endedStaticPods(ctx)...)
		looks++
		if names, news := f.lost.miss(restart, ends); len(news) > 0 {
			f.send(ctx, core.PodsLost{Words: lostWords(names), New: news})
		}
	}
}

func lostWords(names []string) string {
	shown := strings.Join(names[:min(namedPods, len(names))], ", ")
	if len(names) > namedPods {
		shown += "…"
	}
	return fmt.Sprintf("running pods lost at the restart: %d: %s", len(names), shown)
}
