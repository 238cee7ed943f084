package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

// lostAfter is how long a restarted kubelet is healthy until it has killed what it refuses, and said so.
const lostAfter = 30 * time.Second

// lostPods compares the pods of a node before and after a restart that was somebody's choice (rule 19).
type lostPods struct {
	mu    sync.Mutex
	seen  map[string]string // names of the pods that ran at the newest look at a change, by their uid
	owing map[string]string // those to be looked for once a kubelet is healthy again; nil = none
}

func (p *lostPods) before(pods []corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = map[string]string{}
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

// take gives what is to be looked for, once.
func (p *lostPods) take() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	owing := p.owing
	p.owing = nil
	return owing
}

// countLost tells of the pods that ran before a restart and have ended after it, or are gone.
func (l *loop) countLost(ctx context.Context, ran map[string]string) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(l.lostAfter):
	}
	pods, err := l.readPods(ctx)
	if err != nil || pods == nil {
		l.Logger.Debug("whether pods were lost at the restart is not known", zap.Error(err))
		return
	}
	if names := missing(ran, pods); len(names) > 0 {
		l.send(ctx, decide.PodsLost{Words: lostWords(names)})
	}
}

// missing names those that are not in the list: of pods that have not ended ([forecast.ReadPods]).
func missing(ran map[string]string, pods []corev1.Pod) (names []string) {
	there := map[string]bool{}
	for _, pod := range pods {
		there[string(pod.UID)] = true
	}
	for uid, name := range ran {
		if !there[uid] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func lostWords(names []string) string {
	shown := strings.Join(names[:min(namedPods, len(names))], ", ")
	if len(names) > namedPods {
		shown += "…"
	}
	return fmt.Sprintf("running pods lost at the restart: %d: %s", len(names), shown)
}
