//go:build linux

package supervisor

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
)

// ErrAnother says that another supervisor has the same folders, and so its own kubelet: no process may start a second one.
var ErrAnother = fmt.Errorf("%w: another supervisor", ErrUsage)

// StandAside makes room for a kubelet that runs without a supervisor, in this process: it ends one that a supervisor left behind, and
// says in state.json why there is no supervisor. runDirs are tried in their order; that which can be used holds state.json.
//
// It returns an error where a second kubelet would run next to another, and in no other case: ErrAnother, or why the kubelet that was left
// behind could not be stopped.
func StandAside(o Options, why string, runDirs ...string) error {
	if h := o.Handover; h != nil && h.lock != nil {
		_ = h.lock.Close() // ours, and in the way of the question that follows
	}
	held, inTime := within(diskAnswersWithin, func() error { return stateFolderIsFree(o) })
	if !inTime { // a supervisor that runs has a kubelet, which is looked for next
		o.Logger.Error("whether the state folder is in use is not known, because its disk does not answer", zap.String("folder", o.StateDir))
	} else if held != nil {
		return held
	}
	for _, o.RunDir = range runDirs {
		unusable := prepareRunDir(o.RunDir)
		if unusable != nil {
			o.Logger.Error("the run folder cannot be used", zap.Error(unusable))
		}
		if err := stopLeftOversBelow(o, unusable == nil); err != nil {
			return err
		}
		if unusable != nil {
			continue
		}
		if err := recordAlone(o, why); err != nil {
			o.Logger.Error("state.json cannot say that the kubelet runs alone", zap.Error(err))
		}
		break
	}
	collectLost(o.Handover)
	giveLimitsBack(o, WriteBackLimits)
	return nil
}

const (
	// diskAnswersWithin and limitsBackWithin are how long the kubelet alone waits for it: the disk of the state folder, or the system bus,
	// may never answer.
	diskAnswersWithin = 5 * time.Second
	limitsBackWithin  = 5 * time.Second
)

// within returns what comes of something that may never end. Then it ends with this process, which becomes the kubelet.
//
//nolint:revive // the error is the answer, and not that of the wait
func within(limit time.Duration, do func() error) (err error, inTime bool) {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err = <-done:
		return err, true
	case <-time.After(limit):
		return nil, false
	}
}

// giveLimitsBack writes back the limits of the assigned configuration, which would stay although the kubelet alone does not run with it.
func giveLimitsBack(o Options, writeBack func(ctx context.Context, stateDir string) (said []string, err error)) {
	ctx, cancel := context.WithTimeout(context.Background(), limitsBackWithin)
	defer cancel()
	err, inTime := within(limitsBackWithin, func() error {
		said, err := writeBack(ctx, o.StateDir)
		for _, words := range said {
			o.Logger.Info(words)
		}
		return err
	})
	if !inTime {
		err = fmt.Errorf("it takes more than %s, and a kubelet has to be started", limitsBackWithin)
	}
	if err != nil {
		o.Logger.Error("limits that a kubelet has set cannot be written back", zap.Error(err))
	}
}

// stopLeftOversBelow does not read state.json in a folder that cannot be used: it may be anybody's word.
func stopLeftOversBelow(o Options, usable bool) error {
	kubelets := newLauncher(o, 0)
	if usable {
		_, err := stopLeftOvers(o, kubelets)
		return err
	}
	_, err := kubelets.StopLeftOvers(nil, o.StopTimeout)
	return heldRunDir(err, o.RunDir)
}

// stateFolderIsFree fails where another supervisor has locked the folder. Whatever else is wrong with it does not matter here.
func stateFolderIsFree(o Options) error {
	if _, err := os.Lstat(o.StateDir); err != nil {
		return nil // opening it would make it
	}
	s, err := store.Open(o.StateDir)
	if err != nil {
		o.Logger.Error("the state folder cannot be used", zap.Error(err))
		return heldByAnother(err)
	}
	_ = s.Close()
	return nil
}

// recordAlone says that this process is the kubelet, without a supervisor. A supervisor that is started with the same run folder finds
// it alive, and leaves it alone.
func recordAlone(o Options, why string) error {
	r := newRecord(o.RunDir)
	r.Version, r.Phase, r.Alone = o.Version, "Alone", why
	itself := r.Supervisor
	itself.Executable = o.Kubelet
	r.Child = &itself
	return r.write()
}
