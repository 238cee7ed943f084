//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A step is something that is done, and what has to be seen of it before the next one is begun.
type step struct {
	words string
	do    func(context.Context) error
}

// happened is a step that was seen.
type happened struct {
	at    time.Time // when it was begun
	words string
}

const poolYAML = `apiVersion: kubelet-supervisor.io/v1alpha1
kind: KubeletPool
metadata: {name: workers}
spec:
  selector: {matchLabels: {kubelet-supervisor.io/pool-of: workers}}
  layers:
  - {name: density, inline: {maxPods: 250}}
  rollout: {settle: 0s}
`

// deadlyLayer is one that the fake kubelets die of, some time after their start.
const deadlyLayer = `{"maxPods":250,"fake":{"mode":"crash","after":"500ms","healthyFirst":true,"words":"so says the fake kubelet"}}`

const quiet = 30 * time.Second // a panel of a flat line needs some of it

// story lets it all happen, one step after the other.
func (s *stage) story(ctx context.Context) error {
	for _, step := range []step{
		{"nothing is assigned", s.rest},
		{"a pool of n2 to n5 is made, and rolls out by waves", s.rollGood},
		{"n1 is assigned a configuration; a flag goes before one field of it", s.assigned("good", "maxPods: 42\neventRecordQPS: 11\n", "Active")},
		{"n1 is assigned a value that its kubelet refuses", s.assigned("bad", "maxPods: -1\n", "Refused")},
		{"n1 is assigned one that its kubelet dies of", s.assigned("deadly", "maxPods: 42\nsystemReserved: {memory: 1Ti}\n", "Rejected")},
		{"n1 is assigned the good one again, and four pods run there", s.fill},
		{"n1 is assigned maxPods: 2, which would kill two of them", s.assigned("two-pods", "maxPods: 2\n", "WouldDisrupt")},
		{"nothing more", s.rest},
		{"two of the pods leave, and it goes through", s.drain},
		{"the pool gets a layer that its kubelets die of, and stops", s.rollDeadly},
		{"n5 is assigned by hand", s.byHand},
		{"the kubelet of n3 is killed, three times", s.killKubelet},
		{"the controller that leads is killed, and the other one leads", s.killLeader},
		{"the pool goes back", s.goBack},
		{"nothing more", s.rest},
	} {
		begun := time.Now()
		fmt.Println(begun.UTC().Format(time.TimeOnly), step.words)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.words, err)
		}
		s.steps = append(s.steps, happened{begun, step.words})
	}
	return nil
}

func (s *stage) rest(ctx context.Context) error {
	select {
	case <-time.After(quiet):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stage) kubectl(ctx context.Context, words ...string) error {
	_, err := s.cluster.Kubectl(ctx, words...)
	return err
}

// apply applies a text.
func (s *stage) apply(ctx context.Context, name, text string) error {
	if err := os.WriteFile(s.path(name+".yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	return s.kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", s.path(name+".yaml"))
}

func (s *stage) rollGood(ctx context.Context) error {
	if err := s.kubectl(ctx, append(append([]string{"label", "node"}, fakeNodes...), "kubelet-supervisor.io/pool-of=workers")...); err != nil {
		return err
	}
	if err := s.apply(ctx, "pool", poolYAML); err != nil {
		return err
	}
	return s.awaitPool(ctx, "Ready", "Completed")
}

// assigned makes a ConfigMap of the node's own configuration, but for some lines, and assigns it to n1.
func (s *stage) assigned(name, lines, reason string) func(context.Context) error {
	return func(ctx context.Context) error {
		const own = "maxPods: 20\neventRecordQPS: 7\n"
		text := strings.Replace(s.cluster.KubeletConfig(), own, lines, 1)
		if !strings.Contains(text, lines) {
			return fmt.Errorf("the node's own configuration has no %q", own)
		}
		if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
			return err
		}
		if err := s.kubectl(ctx, "create", "configmap", name, "-n", "kubelet-config", "--from-file=kubelet="+s.path(name)); err != nil {
			return err
		}
		return s.assign(ctx, cluster.NodeName, name, reason)
	}
}

func (s *stage) assign(ctx context.Context, node, name, reason string) error {
	source := "kubelet-config/" + name + "/kubelet"
	if err := s.kubectl(ctx, "annotate", "node", node, "--overwrite", nodev1.ConfigSourceAnnotation+"="+source); err != nil {
		return err
	}
	return s.await(ctx, node+" says "+reason, func() error {
		n, err := s.node(ctx, node)
		if err == nil && nodev1.Read(&n).Status.Observed != source {
			err = fmt.Errorf("it has looked at %q", nodev1.Read(&n).Status.Observed)
		}
		return errors.Join(err, says(n, reason))
	})
}

func (s *stage) fill(ctx context.Context) error {
	if err := s.assign(ctx, cluster.NodeName, "good", "Active"); err != nil {
		return err
	}
	for i := range 4 {
		if err := s.apply(ctx, fmt.Sprintf("pod-%d", i), fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d","namespace":"default"},"spec":{"nodeName":%q,"hostNetwork":true,`+
			`"automountServiceAccountToken":false,"terminationGracePeriodSeconds":1,"containers":[{"name":"main","image":%q,"imagePullPolicy":"Never"}]}}`, i, cluster.NodeName, cluster.PauseImage)); err != nil {
			return err
		}
	}
	return s.kubectl(ctx, "wait", "--for=condition=Ready", "pod/p0", "pod/p1", "pod/p2", "pod/p3", "-n", "default", "--timeout=180s")
}

func (s *stage) drain(ctx context.Context) error {
	if err := s.kubectl(ctx, "delete", "pod", "p2", "p3", "-n", "default"); err != nil {
		return err
	}
	if err := s.kubectl(ctx, "annotate", "node", cluster.NodeName, "--overwrite", nodev1.RetryAnnotation+"=drained"); err != nil {
		return err
	}
	return s.awaitNode(ctx, cluster.NodeName, "Active")
}

func (s *stage) rollDeadly(ctx context.Context) error {
	return errors.Join(s.relayer(ctx, deadlyLayer), s.awaitPool(ctx, "Stalled", "Stopped"))
}

func (s *stage) goBack(ctx context.Context) error {
	return errors.Join(s.relayer(ctx, `{"maxPods":250}`), s.awaitPool(ctx, "Ready", "Completed"))
}

// relayer gives the pool another layer. It is no apply: that would leave the fields which a patch has made.
func (s *stage) relayer(ctx context.Context, layer string) error {
	return s.kubectl(ctx, "patch", "kpool", "workers", "--type=merge", "-p", `{"spec":{"layers":[{"name":"density","inline":`+layer+`}]}}`)
}

// byHand assigns a member of the pool what nobody asked the pool for: its own file.
func (s *stage) byHand(ctx context.Context) error {
	name := fakeNodes[len(fakeNodes)-1]
	text := strings.Replace(s.cluster.KubeletConfig(), "maxPods: 20", "maxPods: 30", 1)
	if err := os.WriteFile(s.path("hand"), []byte(text), 0o600); err != nil {
		return err
	}
	if err := s.kubectl(ctx, "create", "configmap", "by-hand", "-n", "kubelet-config", "--from-file=kubelet="+s.path("hand")); err != nil {
		return err
	}
	return s.assign(ctx, name, "by-hand", "Active")
}

func (s *stage) killKubelet(ctx context.Context) error {
	const name = "n3"
	for range 3 {
		old := children(s.nodes[name].PID())
		if len(old) != 1 {
			return fmt.Errorf("the supervisor of %s has the children %v", name, old)
		}
		if err := syscall.Kill(old[0], syscall.SIGKILL); err != nil {
			return err
		}
		if err := s.await(ctx, "another kubelet runs", func() error {
			if now := children(s.nodes[name].PID()); len(now) != 1 || now[0] == old[0] {
				return fmt.Errorf("%v", now)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return s.rest(ctx)
}

// children are the processes below one.
func children(pid int) (pids []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file) // a thread may have ended
		for _, word := range strings.Fields(string(text)) {
			var child int
			if _, err := fmt.Sscan(word, &child); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// killLeader kills the controller that says it leads, and waits for the Lease to have another holder.
func (s *stage) killLeader(ctx context.Context) error {
	holder := func() (string, error) {
		return s.cluster.Kubectl(ctx, "get", "lease", "kubelet-supervisor-controller", "-n", "kubelet-supervisor", "-o", "jsonpath={.spec.holderIdentity}")
	}
	before, err := holder()
	if err != nil {
		return err
	}
	leads, err := s.dashboard.Ask(ctx, "query", map[string][]string{"query": {"leader_election_master_status == 1"}})
	if err != nil {
		return err
	}
	if len(leads) != 1 {
		return fmt.Errorf("of the controllers these say that they lead: %v", leads)
	}
	for i := range controllers {
		if strings.HasSuffix(leads[0].Metric["instance"], fmt.Sprint(8443+i)) {
			s.leaders[i].Signal(syscall.SIGKILL)
		}
	}
	return s.await(ctx, "another one leads", func() error {
		now, err := holder()
		if err == nil && (now == before || now == "") {
			err = fmt.Errorf("it is %s", now)
		}
		return err
	})
}

func (s *stage) node(ctx context.Context, name string) (n corev1.Node, err error) {
	err = s.admin.Get().Resource("nodes").Name(name).Do(ctx).Into(&n)
	return n, err
}

func says(n corev1.Node, reason string) error {
	if said := nodev1.Read(&n); said.Status.Reason != reason {
		return fmt.Errorf("it says %q: %s", said.Status.Reason, said.Condition.Message)
	}
	return nil
}

func (s *stage) awaitNode(ctx context.Context, name, reason string) error {
	return s.await(ctx, name+" says "+reason, func() error {
		n, err := s.node(ctx, name)
		return errors.Join(err, says(n, reason))
	})
}

// awaitPool waits for a condition that is True for a reason, and speaks of the pool as it is now.
func (s *stage) awaitPool(ctx context.Context, condition, reason string) error {
	return s.await(ctx, "the pool says "+reason, func() error {
		text, err := s.cluster.Kubectl(ctx, "get", "kpool", "workers", "-o",
			`jsonpath={.metadata.generation} {.status.observedGeneration} {range .status.conditions[?(@.type=="`+condition+`")]}{.status} {.reason}: {.message}{end}`)
		var generation, observed int
		var status, why string
		if err == nil {
			_, err = fmt.Sscan(text, &generation, &observed, &status, &why)
		}
		if err == nil && (generation != observed || status != "True" || why != reason+":") {
			err = errors.New(text)
		}
		return err
	})
}

// await asks until there is no error any more.
func (s *stage) await(ctx context.Context, what string, seen func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := seen()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w; seen last: %w", what, ctx.Err(), err)
		}
	}
}
