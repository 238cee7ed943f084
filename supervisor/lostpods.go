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

const (
	lostAfter   = 30 * time.Second // of health, by which a restarted kubelet has killed what it refuses, and said so
	snapshotAge = 15 * time.Second // of the pods before a restart; what is older does not tell what that restart cost
)

// lostPods compares the pods of a node before and after a restart that was somebody's choice (rule 19).
type lostPods struct {
	mu      sync.Mutex
	taken   time.Time
	running map[string]string // names of those that ran when a change was looked at, by their uid
	restart bool              // the kubelet was stopped for that change
}

func (p *lostPods) before(pods []corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken, p.restart, p.running = time.Now(), false, map[string]string{}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && pod.Annotations[corev1.MirrorPodAnnotationKey] == "" {
			p.running[string(pod.UID)] = pod.Namespace + "/" + pod.Name
		}
	}
}

func (p *lostPods) stopped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restart = time.Since(p.taken) < snapshotAge
}

// started gives what to compare with, once for a restart; nil = nothing.
func (p *lostPods) started() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.restart {
		return nil
	}
	p.restart = false
	return p.running
}

// countLost tells of the pods that ran before a restart and have ended after it, or are gone.
func (l *loop) countLost(ctx context.Context, ran map[string]string) {
	if len(ran) == 0 {
		return
	}
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
