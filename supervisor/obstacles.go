//go:build linux

package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
)

const (
	obstaclesEvery  = 10 * time.Second // a look at what the next start would meet; it reads two or three small files
	runtimePatience = 5 * time.Second
	obstacleLimit   = 300 // bytes
)

// A startLook looks at the host as a kubelet does that starts: at what no pre-flight gets to, and what a kubelet that runs does not see.
type startLook struct {
	arguments []string // the kubelet's command line, without the binary
	swaps     func() ([]string, error)
	now       func() time.Time
}

// Obstacles returns what keeps a kubelet with this command line, without the binary, from starting on this host now. The container runtime
// is asked only where the kubelet has reported what it would run with.
func Obstacles(ctx context.Context, arguments []string, effective kubeletconfig.Effective) []core.Obstacle {
	look := startLook{arguments: arguments}
	found := look.obstacles(effective)
	if effective.Told {
		found = append(found, look.runtime(ctx, effective, "")...)
	}
	return found
}

// obstacles returns those that last until a person removes them.
func (l startLook) obstacles(effective kubeletconfig.Effective) (found []core.Obstacle) {
	settings, known := effective.StartSettings()
	if words := l.swap(settings); words != "" && known {
		found = append(found, core.Obstacle{Kind: core.ObstacleSwap, Words: words})
	}
	now := time.Now
	if l.now != nil {
		now = l.now
	}
	rotates := settings.RotateCertificates || !known
	if words := credentialObstacle(commandline.Parse(l.arguments), rotates, now()); words != "" {
		found = append(found, core.Obstacle{Kind: core.ObstacleCredential, Words: shortObstacle(words)})
	}
	return found
}

func (l startLook) swap(settings kubeletconfig.StartSettings) string {
	if !settings.FailSwapOn {
		return ""
	}
	read := host.Swaps
	if l.swaps != nil {
		read = l.swaps
	}
	areas, err := read()
	switch {
	case err != nil: // the kubelet ends there, too
		return shortObstacle(fmt.Sprintf("whether swap is on cannot be read, and failSwapOn is true: %v", err))
	case len(areas) == 0:
		return ""
	}
	return shortObstacle(fmt.Sprintf("swap is on (%s), and failSwapOn is true", strings.Join(areas, ", ")))
}

// runtime is the obstacle of a container runtime that does not answer. Of one that was asked just before, only a refusal is one: an answer
// that does not come is waited for there.
func (l startLook) runtime(ctx context.Context, effective kubeletconfig.Effective, asked string) []core.Obstacle {
	endpoint, ask := l.endpoint(effective), host.RuntimeAnswers
	switch endpoint {
	case "":
		return nil
	case asked:
		ask = host.RuntimeRefuses
	}
	ctx, cancel := context.WithTimeout(ctx, runtimePatience)
	defer cancel()
	err := ask(ctx, endpoint)
	if err == nil {
		return nil
	}
	words := fmt.Sprintf("the container runtime at %s does not answer: %v", endpoint, err)
	return []core.Obstacle{{Kind: core.ObstacleRuntime, Words: shortObstacle(words)}}
}

// endpoint is the container runtime's. Before Kubernetes 1.27 it is a matter of the command line.
func (l startLook) endpoint(effective kubeletconfig.Effective) string {
	settings, _ := effective.StartSettings()
	return cmp.Or(settings.RuntimeEndpoint, commandline.Parse(l.arguments).ContainerRuntimeEndpoint)
}

func shortObstacle(words string) string { return bounded.Text(bounded.Line(words), obstacleLimit) }

// looksAtStart is the loop's own look.
func (in *inputs) looksAtStart() startLook {
	return startLook{arguments: in.Arguments, swaps: in.swaps}
}

// obstaclesOf are those of a change to a configuration, as far as the kubelet has told it. The forecast has asked the runtime at the
// endpoint asked; "" for none.
func (f *foresight) obstaclesOf(ctx context.Context, then kubeletconfig.Effective, asked string) []core.Obstacle {
	look := f.looksAtStart()
	found := look.obstacles(then)
	if then.Told {
		found = append(found, look.runtime(ctx, then, asked)...)
	}
	return found
}

// watchObstacles tells the loop what the next start of the kubelet would meet, whenever that differs from before, until ctx ends. Two looks
// have to find an obstacle: a file may just be written.
func (w *watches) watchObstacles(ctx context.Context, told []core.Obstacle) {
	path := w.arguments.Kubeconfig
	before := told
	for ctx.Err() == nil {
		content, _ := kubeletconfig.ReadFile(path)
		runs, _ := w.effectives.running()
		found := w.looksAtStart().obstacles(runs)
		if isSure := len(found) == 0 || slices.Equal(found, before); isSure && !slices.Equal(found, told) {
			told = found
			w.logObstacles(found)
			w.send(ctx, core.ObstaclesSeen{Obstacles: found})
		}
		before = found
		if path != "" {
			awaitChange(ctx, path, content, obstaclesEvery)
			continue
		}
		select {
		case <-time.After(obstaclesEvery):
		case <-ctx.Done():
		}
	}
}

func (w *watches) logObstacles(found []core.Obstacle) {
	if len(found) == 0 {
		w.Logger.Info("a kubelet would start again on this host")
	}
	for _, o := range found {
		w.Logger.Warn("the kubelet runs, and no kubelet would start in its place", zap.String("obstacle", string(o.Kind)),
			zap.String("words", o.Words))
	}
}
