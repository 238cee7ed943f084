package supervisor

import (
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

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

const (
	// lostAfter is how long a restarted kubelet is healthy until it has killed what it refuses, and said so.
	lostAfter = 30 * time.Second
	// A container that ends slowly is seen at the second look; an API server that is away for some minutes is waited for.
	lostLooks, lostTries = 2, 10
)

// lostPods compares the pods of a node before and after a restart that was somebody's choice (rule 19).
type lostPods struct {
	mu     sync.Mutex
	begun  int               // looks at changes, numbered as they begin
	newest int               // the one that seen is of
	seen   map[string]string // names of the pods that ran at the newest look at a change, by their uid
	owing  map[string]string // those to be looked for once a kubelet is healthy again; nil = none

	restarts int               // after which pods were looked for
	awaited  map[string]string // those that are looked for, and were not missed yet
	missed   []string          // names of those that were, after the newest restart
}

// begin numbers a look at a change.
func (p *lostPods) begin() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	return p.begun
}

// before takes what a look has seen. A look that comes after a newer one is too old, and one without an answer (pods is nil) has seen nothing:
// what an earlier look saw stays.
func (p *lostPods) before(look int, pods []corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if look < p.newest || pods == nil {
		return
	}
	p.newest, p.seen = look, map[string]string{}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && pod.Annotations[corev1.MirrorPodAnnotationKey] == "" {
			p.seen[string(pod.UID)] = pod.Namespace + "/" + pod.Name
		}
	}
}

// compare is for the stop of a kubelet that follows such a look. What a candidate costs that never gets healthy is seen with its fallback.
func (p *lostPods) compare() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owing = p.seen
}

// take begins to look for what ran before a restart: it gives the restart's number, once, or 0. What an earlier restart has cost and is not
// known yet is looked for with it.
func (p *lostPods) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.owing) == 0 {
		return 0
	}
	if p.awaited == nil {
		p.awaited = map[string]string{}
	}
	maps.Copy(p.awaited, p.owing)
	p.owing, p.missed = nil, nil
	p.restarts++
	return p.restarts
}

// awaits tells whether a pod is looked for.
func (p *lostPods) awaits(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, is := p.awaited[string(uid)]
	return is
}

// miss names what ran before a restart and is not in the list of pods that have not ended ([forecast.ReadPodsAndEnds]). It counts those of them
// that are news by the reason of their end; none where nothing is, or another restart has followed.
func (p *lostPods) miss(restart int, pods []corev1.Pod, ends map[types.UID]string) (names []string, news map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if restart != p.restarts {
		return nil, nil
	}
	gone := maps.Clone(p.awaited)
	for _, pod := range pods {
		delete(gone, string(pod.UID))
	}
	if len(gone) == 0 {
		return nil, nil
	}
	news = map[string]int{}
	for uid, name := range gone {
		delete(p.awaited, uid)
		p.missed = append(p.missed, name)
		reason, ended := ends[types.UID(uid)]
		if !ended {
			reason = decide.PodGone
		}
		news[reason]++
	}
	slices.Sort(p.missed)
	return slices.Clone(p.missed), news
}

// over is true where nothing is looked for any more after this restart, or last is: nobody looks again.
func (p *lostPods) over(restart int, last bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if restart == p.restarts && last {
		p.awaited = nil
	}
	return restart != p.restarts || last
}

// countLost tells of the pods that ran before a restart and have ended after it, or are gone.
func (l *loop) countLost(ctx context.Context, restart int) {
	for looks, tries := 0, 1; !l.lost.over(restart, looks == lostLooks || tries > lostTries); tries++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.lostAfter):
		}
		ends := map[types.UID]string{}
		pods, err := l.readPods(ctx, func(uid types.UID, reason string) {
			if l.lost.awaits(uid) { // a node may have hundreds of others
				ends[uid] = reason
			}
		})
		if err != nil || pods == nil {
			l.Logger.Debug("whether pods were lost at the restart is not known", zap.Error(err))
			continue
		}
		looks++
		if names, news := l.lost.miss(restart, pods, ends); len(news) > 0 {
			l.send(ctx, decide.PodsLost{Words: lostWords(names), New: news})
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
