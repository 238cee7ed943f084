//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Exit codes of `kubelet-supervisor check`.
var verdicts = map[int]string{0: "accepted", 1: "refused", 3: "unknown"}

const checkRounds = 3 // the median of so many is told

// tryPreflight asks the kubelet, by `kubelet-supervisor check`, about configurations whose verdict is known.
func (b *bench) tryPreflight(ctx context.Context, k *kubeletSeen) {
	good := b.node.payload(good)
	k.add(b.checkShadowed(ctx, good))
	for _, c := range []struct {
		name, payload string
		expected      []string
		flags         []string
	}{
		{"a good configuration", good, []string{"accepted"}, nil},
		{"a value that validation refuses", strings.Replace(good, "eventRecordQPS: 7", "eventRecordQPS: -7", 1), []string{"refused"}, nil},
		{"a field that nobody knows", good + "maxPodz: 3\n", []string{"accepted"}, nil},
		{"a feature gate that nobody knows", good + "featureGates: {NoSuchGate: true}\n", []string{"refused"}, nil},
		{"a clientCAFile that is not there", b.node.payload(deadly), []string{"accepted", "refused"}, nil},
		{"flags with which the kubelet ends before the check of its lock file", good, []string{"unknown"}, []string{"--no-such-flag"}},
	} {
		k.add(b.check(ctx, c.name, c.payload, c.expected, c.flags))
	}
}

// check asks about one configuration.
func (b *bench) check(ctx context.Context, name, payload string, expected, flags []string) *Step {
	s := &Step{Part: preflightPart, Name: name}
	file := filepath.Join(b.cluster.Folder, "check.yaml")
	if err := os.WriteFile(file, []byte(payload), 0o600); err != nil {
		s.Words = err.Error()
		return s
	}
	took := &Row{}
	for range checkRounds {
		// Its words are those of the last round.
		words := b.cluster.Command(b.Binary, slices.Concat([]string{"check", file, "--"}, b.node.kubelet(flags...))...)
		begin := time.Now()
		command := exec.CommandContext(ctx, words.Args[0], words.Args[1:]...)
		output, err := command.CombinedOutput()
		took.addTime(time.Since(begin))
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			s.Words = err.Error()
			return s
		}
		s.Brief = verdicts[command.ProcessState.ExitCode()]
		s.Words = oneLine(strings.NewReplacer(file, "FILE", b.cluster.Kubelet(), "KUBELET", b.cluster.Folder, "FOLDER").Replace(string(output)))
	}
	s.Took = took.Median()
	s.Works = slices.Contains(expected, s.Brief)
	return s
}

// shadowing is a flag that goes before a field that nothing else in the matrix sets.
const (
	shadowing    = "--max-open-files=1000002"
	shadowed     = "maxOpenFiles: %d\n"
	shadowedPart = "a field that a flag goes before: the warning"
)

// checkShadowed asks for the effective configuration: it is told by the kubelet, or our own reading.
func (b *bench) checkShadowed(ctx context.Context, good string) *Step {
	s := b.check(ctx, shadowedPart, good+fmt.Sprintf(shadowed, 1000003), []string{"accepted"}, []string{shadowing})
	s.Works = s.Works && strings.Contains(s.Words, "shadowed: maxOpenFiles (1000003) by --max-open-files (1000002)")
	s.Brief = "told"
	if strings.Contains(s.Words, "our own reading") {
		s.Brief = "own reading"
	}
	return s
}

// tells: by the step above.
func (k *kubeletSeen) tells() bool {
	return slices.ContainsFunc(k.Steps, func(s *Step) bool { return s.Name == shadowedPart && s.Brief == "told" })
}

// A job is a step of the main job; it gives what it saw of the Node, and an error where this is not what has to be.
type job struct {
	name string
	do   func(ctx context.Context) error
}

const localPods = 20 // maxPods of the local configuration

// tryJob goes through the main job, with what runs read back from the kubelet itself.
func (b *bench) tryJob(ctx context.Context, k *kubeletSeen) {
	var supervisor *process
	var started bool
	for _, j := range b.jobs(&supervisor, k.tells()) {
		s := &Step{Part: jobPart, Name: j.name}
		k.add(s)
		if !started && j.name != startJob {
			s.Words = "not tried after that"
			continue
		}
		begin := time.Now()
		err := j.do(ctx)
		s.Took = milliseconds(time.Since(begin))
		seen, look := b.node.look(ctx)
		s.Words = oneLine(fmt.Sprintf("%s: %s", seen.reason, seen.message))
		if err = errors.Join(err, look); err != nil {
			s.Words = oneLine(err.Error())
			continue
		}
		s.Works, started = true, true
	}
	if supervisor != nil {
		_ = b.end(supervisor) // what it took to stop is no step
	}
}

const startJob = "start under the supervisor: Ready, local"

// jobs are in their order; each begins where the one before ended. tells: the kubelet tells its effective configuration.
func (b *bench) jobs(supervisor **process, tells bool) []job {
	n := b.node
	// runs waits until the Node says as, and checks that the healthy kubelet has so many pods at most.
	runs := func(ctx context.Context, description string, as func(view) bool, pods int) error {
		if err := n.awaitNode(ctx, description, as); err != nil {
			return err
		}
		return b.runsWith(ctx, pods)
	}
	written := func(ctx context.Context, name, payload string) error {
		version, err := n.write(ctx, name, payload)
		if err == nil {
			err = n.assign(ctx, name)
		}
		if err != nil {
			return err
		}
		return runs(ctx, "that it is active", func(v view) bool { return v.runs(name, version) }, 100+n.pods)
	}
	failing := func(ctx context.Context, name, kind, reason string) error {
		version, err := n.write(ctx, name, n.payload(kind))
		if err == nil {
			err = n.assign(ctx, name)
		}
		if err != nil {
			return err
		}
		return runs(ctx, reason, func(v view) bool { return v.failed(name, version, reason) }, localPods)
	}
	return []job{
		{startJob, func(ctx context.Context) (err error) {
			if *supervisor, err = b.supervisorProcess("job", n.kubelet(shadowing)); err != nil {
				return err
			}
			return runs(ctx, "local, and that it is ready", func(v view) bool { return v.local() && v.ready }, localPods)
		}},
		{"a configuration is assigned: active", func(ctx context.Context) error { return written(ctx, "bench-good", n.payload(good)) }},
		{"it is edited: active", func(ctx context.Context) error { return written(ctx, "bench-good", n.payload(good)) }},
		{"it is edited again: the next kubelet waits for the one that runs, where the kubelet tells", func(ctx context.Context) error {
			logged := (*supervisor).LogSize()
			if err := written(ctx, "bench-good", n.payload(good)); err != nil {
				return err
			}
			log, err := (*supervisor).LogFrom(logged)
			if waited := strings.Contains(log, `"waits":true`); err == nil && waited != tells {
				err = fmt.Errorf("that a kubelet waited is %t, and that the kubelet tells its configuration is %t", waited, tells)
			}
			return err
		}},
		{"equal content: no restart", func(ctx context.Context) error {
			_, err := b.restarts(ctx, *supervisor, func() (string, error) { return n.label(ctx, "bench-good") }, false)
			return err
		}},
		{"an edit that a flag goes before: no restart where the kubelet tells", func(ctx context.Context) error {
			text := n.payload(good)
			if err := written(ctx, "bench-good", text); err != nil {
				return err
			}
			message, err := b.restarts(ctx, *supervisor, func() (string, error) {
				return n.write(ctx, "bench-good", text+fmt.Sprintf(shadowed, 1000004))
			}, !tells)
			if err == nil && !strings.Contains(message, "Shadowed: maxOpenFiles (1000004) by --max-open-files (1000002)") {
				err = fmt.Errorf("the Node does not say what is shadowed: %s", message)
			}
			return err
		}},
		{"a field that nobody knows: active, with a warning", func(ctx context.Context) error {
			if err := written(ctx, "bench-good", n.payload(good)+"maxPodz: 3\n"); err != nil {
				return err
			}
			return n.awaitNode(ctx, "the field's name", func(v view) bool { return strings.Contains(v.message, "maxPodz") })
		}},
		{"a refused payload: local runs, and the Node says why", func(ctx context.Context) error {
			return failing(ctx, "bench-refused", refused, "Refused")
		}},
		{"a deadly payload: rolled back, and the Node says why", func(ctx context.Context) error {
			return failing(ctx, "bench-deadly", greedy, "RolledBack")
		}},
		{"a good one after it: active", func(ctx context.Context) error { return written(ctx, "bench-good", n.payload(good)) }},
		{"layers over its own file: active, and its other fields stay", func(ctx context.Context) error {
			if err := written(ctx, "bench-layers", n.payload(layers)); err != nil {
				return err
			}
			config, err := b.cluster.Configz(ctx)
			if err == nil && config["eventRecordQPS"] != float64(7) {
				err = fmt.Errorf("eventRecordQPS is %v, and 7 in the node's own file", config["eventRecordQPS"])
			}
			return err
		}},
		{heldJob, func(ctx context.Context) error { return b.tryHold(ctx, tells) }},
		{"the assignment is removed: local", func(ctx context.Context) error {
			if err := n.assign(ctx, ""); err != nil {
				return err
			}
			return runs(ctx, "local", view.local, localPods)
		}},
	}
}

// runsWith checks what the healthy kubelet says it runs with.
func (b *bench) runsWith(ctx context.Context, pods int) error {
	if _, err := b.health.awaitUp(ctx); err != nil {
		return err
	}
	return await(ctx, "configz has the configuration", func() error {
		config, err := b.cluster.Configz(ctx)
		if err == nil && config["maxPods"] != float64(pods) {
			err = fmt.Errorf("maxPods is %v there, expected was %d", config["maxPods"], pods)
		}
		return err
	})
}

// restarts makes a change of the assigned ConfigMap bench-good, gives what the Node says when that is active, and fails unless the kubelet
// was started anew, or not, as is wanted.
func (b *bench) restarts(ctx context.Context, supervisor *process, change func() (version string, err error), want bool) (message string, err error) {
	log, err := supervisor.LogFrom(0)
	if err != nil {
		return "", err
	}
	before := strings.Count(log, startingWords)
	version, err := change()
	if err != nil {
		return "", err
	}
	if err := b.node.awaitNode(ctx, "that it is active", func(v view) bool { message = v.message; return v.runs("bench-good", version) }); err != nil {
		return message, err
	}
	if log, err = supervisor.LogFrom(0); err == nil && strings.Count(log, startingWords) > before != want {
		err = fmt.Errorf("the kubelet was started again: %v, wanted: %v", !want, want)
	}
	return message, err
}
