package plugin

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// Execute runs one command line and returns its exit code: 0, or 1 for any failure, as in kubectl. The commands
// that compare, diff, pool diff and status --exit-code, return 1 for a difference, and 2 for any failure; check
// returns 3 and 4 for its answers.
func Execute(ctx context.Context, arguments []string, streams genericiooptions.IOStreams, version string) int {
	f := cmdutil.NewFactory(streams)
	logTo(f.ErrOut)
	return execute(ctx, f, arguments, version)
}

func execute(ctx context.Context, f *cmdutil.Factory, arguments []string, version string) int {
	f.Begin(ctx)
	root := newRoot(f, version)
	root.SetArgs(arguments)
	command, err := root.ExecuteContextC(ctx)
	if err = errors.Join(err, f.Flush()); err == nil {
		return 0
	}
	if errors.Is(err, errDiffers) { // the difference was printed
		return 1
	}
	if code := exitCode(0); errors.As(err, &code) {
		return int(code)
	}
	view.WriteError(f.ErrOut, err)
	if compares(command) {
		return 2
	}
	return 1
}

// errDiffers ends a command that found a difference.
var errDiffers = errors.New("there is a difference")

// An exitCode ends a command that has printed its answer.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// compares reports whether exit code 1 of a command means a difference.
func compares(command *cobra.Command) bool {
	flag := command.Flags().Lookup(exitCodeFlag)
	return command.Annotations[comparesAnnotation] != "" || flag != nil && flag.Value.String() == "true"
}

const (
	comparesAnnotation = "compares"
	exitCodeFlag       = "exit-code"
)

func newRoot(f *cmdutil.Factory, version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-kubelet",
		Short: "Change the configuration of kubelets, node by node, safely",
		Long: `Change the configuration of kubelets on nodes that run kubelet-supervisor.

  kubectl kubelet push my-config --set maxPods=250
  kubectl kubelet assign n1 --config kubelet-config/my-config-HASH
  kubectl kubelet status

The node proves a configuration with its own kubelet, puts it on trial, and rolls it back automatically when it fails.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kubelet"},
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetIn(f.In)
	root.SetOut(f.Out)
	root.SetErr(f.ErrOut)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, command.CommandPath())
	})
	f.Flags.AddFlags(root.PersistentFlags())
	addVerbosity(root.PersistentFlags())
	root.AddCommand(
		newConfig(f), newPush(f), newAssign(f), newReset(f), newRetry(f), newRollback(f),
		newStatus(f), newDescribe(f), newDiff(f), newExplain(f), newCheck(f), newHistory(f), newDoctor(f),
		rollout.NewCommand(f), newPool(f),
		newInstall(f), newPrune(f), newPackageFiles(),
		newOptions(f), newVersion(f, version),
	)
	f.CompleteFlags(root)
	return root
}

// addVerbosity adds -v for client-go's log, as in kubectl: 6 shows requests, 9 everything. It takes the letter
// from --version.
func addVerbosity(flags *pflag.FlagSet) {
	var all flag.FlagSet
	klog.InitFlags(&all)
	for _, name := range []string{"v", "vmodule"} {
		flags.AddGoFlag(all.Lookup(name))
	}
}

// logTo makes client-go write its log there: it has answers of the API server, and so text from any source.
func logTo(to io.Writer) {
	var all flag.FlagSet
	klog.InitFlags(&all)
	_ = all.Set("stderrthreshold", "FATAL") // otherwise errors are also written to stderr, unescaped
	klog.LogToStderr(false)
	klog.SetOutput(to)
}

func newOptions(f *cmdutil.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Short:   "List the flags that every command takes",
		Example: "  kubectl kubelet options",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(f.Out, "Every command takes these flags:\n\n", command.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}

func newVersion(f *cmdutil.Factory, version string) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this plugin",
		Example: "  kubectl kubelet version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(f.Out, "kubectl-kubelet %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
