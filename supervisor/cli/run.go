//go:build linux

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/cli/signals"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/metrics"
)

const (
	runCommand         = "run"
	defaultStopTimeout = 30 * time.Second
)

// The folders, where no others are named. They are others in the tests' program.
var (
	defaultStateDir = "/var/lib/kubelet-supervisor"
	defaultRunDir   = "/run/kubelet-supervisor"
)

// gcPercent trades a little work for memory on every node: seen to take 6.4 MiB of anonymous memory where Go's 100 took 8.3.
const gcPercent = 50

// runOptions are what the flags of run say.
type runOptions struct {
	supervisor.Options
	logFormat string
	selfCheck string
}

func (o *runOptions) command() *cobra.Command {
	command := &cobra.Command{
		Use:     runCommand + " [flags] -- KUBELET [kubelet flags]",
		Short:   "Run the kubelet as a child and keep its configuration as the Node says",
		Example: "  kubelet-supervisor run -- /usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml",
		RunE: func(command *cobra.Command, arguments []string) (err error) {
			if dash := command.ArgsLenAtDash(); dash > 0 {
				return usage("%q before -- is not a flag; only the kubelet's command line is given without a flag, after --", arguments[0])
			}
			if o.Kubelet, o.Arguments, err = kubeletCommand(command, arguments); err != nil {
				if o.Kubelet = o.Handover.KubeletPath(); o.Kubelet == "" {
					return err
				}
			}
			if err := o.check(); err != nil {
				return err
			}
			switch o.selfCheck {
			case "":
				return o.run(command.Context())
			case selfCheckWords:
				return json.NewEncoder(command.OutOrStdout()).Encode(append([]string{o.Kubelet}, o.Arguments...))
			case selfCheckUnit:
				return o.checkUnit(command)
			default:
				return selfCheck(command.OutOrStdout(), o.Version, o.selfCheck)
			}
		},
	}
	f := command.Flags()
	f.StringVar(&o.StateDir, "state-dir", defaultStateDir, "folder of what must survive a reboot: checkpoints and verdicts")
	runDirFlag(f, &o.RunDir)
	f.StringSliceVar(&o.Namespaces, "config-namespaces", []string{"kube-system", "kubelet-config"},
		"namespaces that configurations may come from; * for all")
	f.DurationVar(&o.TrialPeriod, "trial-period", 10*time.Minute, "healthy time before a configuration becomes the last known good one")
	f.IntVar(&o.TrialFailures, "trial-failures", 3, "quick exits within a trial before the rollback")
	f.DurationVar(&o.StartTimeout, "start-timeout", 2*time.Minute,
		"on trial: not healthy by then, or unhealthy for that long altogether, rolls back")
	f.DurationVar(&o.StopTimeout, "stop-timeout", defaultStopTimeout, "from SIGTERM to SIGKILL when the kubelet is stopped")
	f.DurationVar(&o.EditSpread, "edit-spread", time.Minute,
		"edits of an assigned ConfigMap are applied within this time, once they have settled, each node at its own moment; 0: each at once")
	f.StringVar(&o.Disruption, "disruption", core.Hold, "hold: a change that would kill running pods waits until it would kill none, or a "+
		"person lets it through; allow: it is made at once, unless no kubelet would start")
	f.BoolVar(&o.FollowLocal, "follow-local", false, "restart the kubelet for an accepted change of its local files; else it is only reported")
	f.StringVar(&o.Preflight, "preflight", "auto", "ask the kubelet first whether it accepts a configuration: auto (when it is an ELF "+
		"executable), always, never")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "credentials for the Node (default: the kubelet's --kubeconfig)")
	f.StringVar(&o.NodeName, "node-name", "", "name of the Node (default: from the kubelet's flags, its certificate, or the host name)")
	f.StringVar(&o.MetricsFile, "metrics-file", "", "write metrics there for node_exporter's textfile collector, for example "+
		"/var/lib/prometheus/node-exporter/kubelet_supervisor.prom")
	f.StringVar(&o.MetricsAddress, "metrics-address", "", "serve metrics there: unix:///PATH, or an address of loopback with a port")
	// looked for before the words are parsed
	f.String("kill-switch", defaultKillSwitch, "if this file exists, the kubelet is started without the supervisor")
	f.StringVar(&o.selfCheck, selfCheckFlag, "", "")
	if err := f.MarkHidden(selfCheckFlag); err != nil {
		panic(err)
	}
	f.StringVar(&o.logFormat, "log-format", "", "journald, text or json (default: journald where it is, else text)")
	return command
}

func runDirFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "run-dir", defaultRunDir, "folder of what need not survive a reboot: the effective file, state.json, the kubelet's "+
		"newest log")
}

func checkRunDir(folder string) error {
	if !filepath.IsAbs(folder) {
		return usage("--run-dir=%q is not an absolute path; give one such as %s", folder, defaultRunDir)
	}
	return nil
}

// kubeletCommand splits what follows -- into the kubelet's path and flags.
func kubeletCommand(command *cobra.Command, arguments []string) (path string, flags []string, err error) {
	dash := command.ArgsLenAtDash()
	if dash < 0 || dash == len(arguments) {
		return "", nil, usage("the kubelet's command line is missing: %s -- /usr/bin/kubelet …", command.CommandPath())
	}
	arguments = arguments[dash:]
	path, err = findKubelet(arguments[0])
	return path, arguments[1:], err
}

// check finds values that make no sense.
func (o *runOptions) check() error {
	if err := checkLogFormat(o.logFormat); err != nil {
		return err
	}
	if !filepath.IsAbs(o.StateDir) {
		return usage("--state-dir=%q is not an absolute path; give one such as %s", o.StateDir, defaultStateDir)
	}
	if err := checkRunDir(o.RunDir); err != nil {
		return err
	}
	if filepath.Clean(o.StateDir) == filepath.Clean(o.RunDir) {
		return usage("--state-dir and --run-dir are the same folder %s; give two", o.StateDir)
	}
	for flag, duration := range map[string]time.Duration{"trial-period": o.TrialPeriod, "start-timeout": o.StartTimeout,
		"stop-timeout": o.StopTimeout} {
		if duration <= 0 {
			return usage("--%s=%s is not a time to wait; give more than 0", flag, duration)
		}
	}
	switch {
	case o.EditSpread < 0:
		return usage("--edit-spread=%s is negative; give 0 to apply edits at once", o.EditSpread)
	case o.TrialFailures < 1:
		return usage("--trial-failures=%d leaves no try; give 1 or more", o.TrialFailures)
	case !slices.Contains([]string{"auto", "always", "never"}, o.Preflight):
		return usage("--preflight=%q is not one of auto, always, never", o.Preflight)
	case o.Disruption != core.Hold && o.Disruption != core.Allow:
		return usage("--disruption=%q is not one of hold, allow", o.Disruption)
	case o.MetricsFile != "" && (!filepath.IsAbs(o.MetricsFile) || filepath.Ext(o.MetricsFile) != ".prom"):
		return usage("--metrics-file=%q is not an absolute path that ends with .prom, as node_exporter looks for it", o.MetricsFile)
	case len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, ""):
		return usage("--config-namespaces names no namespace; give some, or * for all")
	}
	if o.MetricsAddress != "" {
		if err := metrics.CheckAddress(o.MetricsAddress); err != nil {
			return usage("--metrics-address: %w", err)
		}
	}
	return nil
}

// run brings the signals: TERM and INT stop, HUP reloads, USR1 retries.
func (o *runOptions) run(ctx context.Context) error {
	logger, endLog := newLogger(o.logFormat)
	defer endLog()
	o.Logger = logger
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := context.WithCancel(ctx)
	requests := make(chan supervisor.Request)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer stop()
	heard := signals.Listen()
	defer signals.Stop()
	listening.Go(func() {
		for {
			select {
			case s := <-heard:
				request(ctx, stop, s, requests)
			case <-ctx.Done():
				return
			}
		}
	})
	o.Requests, o.Output = requests, os.Stderr
	o.Successor, o.NextStart, o.UnitFiles, o.AskStart = successor(), nextStartOfThis, filesOfThis, askStartOfThis
	if onJournal() {
		o.Journal = journalStreams
	}
	if err := supervisor.Run(ctx, o.Options); err != nil {
		return fmt.Errorf("running the kubelet %s: %w", o.Kubelet, err)
	}
	return nil
}

// request does what a signal asks for.
func request(ctx context.Context, stop func(), s os.Signal, requests chan<- supervisor.Request) {
	asked := supervisor.Reload
	switch s {
	case syscall.SIGTERM, syscall.SIGINT:
		stop()
		return
	case syscall.SIGUSR1:
		asked = supervisor.RetryNow
	}
	select {
	case requests <- asked:
	case <-ctx.Done():
	}
}
