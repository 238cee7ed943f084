//go:build linux

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// Exit codes of check.
const (
	checkRefused = 1
	checkUnknown = 3
	checkLost    = 4 // with --impact: running pods would be
)

// checkFlags are those of check.
type checkFlags struct {
	mode   string
	active activeFlags
	impact impactFlags
}

func newCheck() *cobra.Command {
	var o checkFlags
	command := &cobra.Command{
		Use:   "check {FILE | --active} [flags] -- KUBELET [kubelet flags]",
		Short: "Ask the kubelet whether it accepts a configuration, without starting it",
		Long: "Ask the kubelet whether it accepts a configuration, without starting it.\nExit codes: 0 accepted, 1 refused, 2 usage, 3 " +
			"unknown, 4 running pods would be lost (--impact)." +
			checkImpactLong + checkActiveLong,
		Example: `  kubelet-supervisor check kubelet.yaml -- /usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf
  kubelet-supervisor check --impact kubelet.yaml -- /usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf
  kubelet-supervisor check --active --kubelet=/root/kubelet`,
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := o.validate(command); err != nil {
				return err
			}
			if o.active.active {
				return o.active.check(command, arguments, o.mode)
			}
			path, flags, err := kubeletCommand(command, arguments)
			if err != nil {
				return err
			}
			return o.check(command, arguments[0], kubelet.Preflight{Kubelet: path, Arguments: flags, Mode: o.mode})
		},
	}
	command.Flags().StringVar(&o.mode, "preflight", "auto", "auto (only when the kubelet is an ELF executable) or always")
	o.active.add(command.Flags())
	o.impact.add(command.Flags())
	return command
}

func (o *checkFlags) validate(command *cobra.Command) error {
	if !slices.Contains([]string{kubelet.PreflightAuto, kubelet.PreflightAlways}, o.mode) {
		return usage("--preflight=%q is neither auto nor always", o.mode)
	}
	if err := o.onlyWith(command.Flags()); err != nil {
		return err
	}
	if !o.active.active && command.ArgsLenAtDash() != 1 {
		return usage("give one FILE before --, and the kubelet's command line after it")
	}
	return o.active.nodeFolders.validate()
}

// onlyWith refuses flags that mean nothing without another.
func (o *checkFlags) onlyWith(f *pflag.FlagSet) error {
	if o.active.active && o.impact.impact {
		return usage("--impact is about one FILE, and --active about what this node has; give one of them")
	}
	for _, name := range []string{"kubeconfig", "node-name"} {
		if f.Changed(name) && !o.impact.impact {
			return usage("--%s is only for --impact", name)
		}
	}
	for _, name := range []string{"state-dir", "run-dir"} {
		if f.Changed(name) && !o.active.active && !o.impact.impact {
			return usage("--%s is only for --active and --impact", name)
		}
	}
	if f.Changed("kubelet") && !o.active.active {
		return usage("--kubelet is only for --active; the kubelet that is asked about a FILE is given after --")
	}
	return nil
}

// check renders the file as the supervisor would, so that a relative path means the file's own folder, and asks the kubelet.
func (o *checkFlags) check(command *cobra.Command, file string, preflight kubelet.Preflight) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return usage("the file %s cannot be found: %w", file, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return usage("the configuration cannot be read: %w", err)
	}
	key := filepath.Base(file)
	payload := map[string]string{key: string(data)}
	base := func() (kubeletconfig.Base, error) { return kubeletconfig.ReadBase(preflight.Arguments) }
	composed, err := kubeletconfig.Compose(payload, key, base)
	if err != nil {
		return exitError{code: checkUnknown, err: fmt.Errorf("nothing can be said of the layers in %s: %w", file, err)}
	}
	rendered, err := composed.Render(filepath.Dir(file), preflight.Arguments)
	var load *kubeletconfig.LoadError
	if errors.As(err, &load) {
		return exitError{code: checkRefused, err: fmt.Errorf("%s is refused: %s", file, load.Words)}
	}
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "kubelet-supervisor-check-")
	if err != nil {
		return fmt.Errorf("making a folder for the check: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	candidate := filepath.Join(folder, "kubelet.yaml")
	if err := os.WriteFile(candidate, rendered, 0o600); err != nil {
		return fmt.Errorf("writing the configuration to check: %w", err)
	}
	preflight.TempFolder = folder
	verdict := preflight.Check(command.Context(), kubelet.Candidate{File: candidate}, &kubelet.Candidate{})
	for _, warning := range append(warningsOf(verdict, kubeletconfig.Warnings(payload, key, verdict.Minor)),
		kubeletconfig.TrapsOf(payload, key, base)...) {
		_, _ = fmt.Fprintln(command.ErrOrStderr(), "warning:", warning)
	}
	switch verdict.Outcome {
	case kubeletconfig.Accepted:
		_, err = fmt.Fprintf(command.OutOrStdout(), "%s is accepted by %s\n", file, preflight.Kubelet)
		found := supervisor.Obstacles(command.Context(), preflight.Arguments, verdict.Effective)
		for _, obstacle := range found {
			_, _ = fmt.Fprintln(command.ErrOrStderr(), "warning: no kubelet would start with it on this machine now:", obstacle.Words)
		}
		if err != nil || !o.impact.impact {
			return err
		}
		if code, words := hostRefuses(found); code == checkRefused {
			return exitError{code: code, err: fmt.Errorf("%s is %s", file, words)}
		}
		return o.impact.tell(command, o.active.nodeFolders, preflight, verdict.Effective)
	case kubeletconfig.Refused:
		return exitError{code: checkRefused, err: fmt.Errorf("%s is refused: %s", file, verdict.Words)}
	case kubeletconfig.Environment:
		return exitError{code: checkUnknown, err: fmt.Errorf("the kubelet's own command line fails the same way, nothing can be said of %s: %s",
			file, verdict.Words)}
	}
	return exitError{code: checkUnknown, err: fmt.Errorf("nothing can be said of %s: %s", file, verdict.Words)}
}

// warningsOf lists what a person should know of a configuration, which may be accepted anyway.
func warningsOf(verdict kubelet.Verdict, unknownFields []string) (list []string) {
	for _, field := range kubeletconfig.ShadowLines(verdict.Shadowed) {
		by := ""
		if !verdict.Effective.Told {
			by = " (our own reading of flags and drop-in files: this kubelet does not tell)"
		}
		list = append(list, "shadowed: "+field+by)
	}
	list = append(list, unknownFields...)
	if verdict.Resolver != "" {
		list = append(list, verdict.Resolver)
	}
	return append(list, verdict.GoingAway...)
}
