package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/controller"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// Exit codes, the same as those of kubelet-supervisor.
const (
	exitOK       = 0
	exitUsage    = 2
	exitInternal = 70
)

// gcPercent limits the memory above the live heap, most of which is caches, to half of it; Go's default of 100
// would double it.
const gcPercent = 50

var errUsage = errors.New("wrong usage")

func usage(format string, values ...any) error {
	return fmt.Errorf("%w: %w", errUsage, fmt.Errorf(format, values...))
}

// Execute runs one command line of the program, and returns its exit code.
func Execute(version string, arguments []string, stdout, stderr io.Writer) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	runtime.MemProfileRate = 0                                                  // controller-runtime links the memory profile, which cannot be requested here, and which grows for hours
	stdout, stderr = bounded.NewWriter(stdout, 0), bounded.NewWriter(stderr, 0) // no text from the API server is trusted (rule 28)
	root := newRoot(version, stderr)
	root.SetArgs(arguments)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintln(stderr, "kubelet-supervisor-controller:", err)
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return exitInternal
}

// options has the values of the flags.
type options struct {
	controller.Options
	kubeconfig string
	logFormat  string
}

func newRoot(version string, stderr io.Writer) *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "kubelet-supervisor-controller",
		Short: "Roll kubelet configurations out over many nodes, as KubeletPools say",
		Long: `kubelet-supervisor-controller assigns configurations to nodes, in waves, and stops at the first sign of harm.

It reads KubeletPools and Nodes, and writes the annotation kubelet-supervisor.io/config-source. What to do with it each node's own
kubelet-supervisor decides. Several of these may run: one leads.`,
		Version:       fmt.Sprintf("%s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return usage("unknown argument %q, see kubelet-supervisor-controller --help", arguments[0])
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.checkMetrics(command.Flags().Changed("metrics-address")); err != nil {
				return err
			}
			return o.run(command.Context(), stderr)
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usage("%w, see kubelet-supervisor-controller --help", err)
	})
	f := root.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "credentials (default: those of the pod)")
	f.StringVar(&o.Namespace, "namespace", "kubelet-supervisor", "namespace of the Lease")
	f.BoolVar(&o.LeaderElect, "leader-elect", true, "take a Lease before anything is written; without it no other one may run")
	f.StringVar(&o.MetricsAddress, "metrics-address", ":8443", "address on which metrics are served by HTTPS, to clients that the API server allows to get /metrics; 0, or no certificate: not served")
	f.StringVar(&o.MetricsCertDir, "metrics-cert-dir", "", "folder with the certificate of the metrics, tls.crt and tls.key, as a Secret is mounted; they may come later, and are read again")
	f.BoolVar(&o.MetricsSelfSigned, "metrics-self-signed", false, "make a certificate for the metrics at the start, which no scraper can verify")
	f.StringVar(&o.HealthAddress, "health-address", ":8081", "where /healthz and /readyz are served; 0: nowhere")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	root.AddCommand(newPackageFiles())
	return root
}

// isAddress reports whether a text is an address to listen on; 0 means none.
func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return text == "0" || err == nil
}

// checkMetrics refuses flags that do not say which certificate the metrics use. asked means that an address was
// given.
func (o *options) checkMetrics(asked bool) error {
	switch given := o.MetricsCertDir != ""; {
	case given && o.MetricsSelfSigned:
		return usage("--metrics-cert-dir and --metrics-self-signed name two certificates; give one")
	case asked && o.MetricsAddress != "0" && !given && !o.MetricsSelfSigned:
		return usage("--metrics-address=%s needs a certificate: give its folder with --metrics-cert-dir, or --metrics-self-signed for one that no scraper can verify", o.MetricsAddress)
	}
	return nil
}

func (o *options) run(ctx context.Context, stderr io.Writer) error {
	if formats := []string{"text", "json"}; !slices.Contains(formats, o.logFormat) {
		return usage("--log-format=%q is not one of %s", o.logFormat, strings.Join(formats, ", "))
	}
	if o.Namespace == "" {
		return usage("--namespace is empty")
	}
	for flag, address := range map[string]string{"metrics-address": o.MetricsAddress, "health-address": o.HealthAddress} {
		if !isAddress(address) {
			return usage("--%s=%q is no HOST:PORT, such as :8443, and not 0", flag, address)
		}
	}
	var err error
	if o.kubeconfig == "" {
		o.Config, err = rest.InClusterConfig()
	} else {
		o.Config, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	}
	if err != nil {
		return fmt.Errorf("reading the credentials (--kubeconfig): %w", err)
	}
	var end func()
	o.Log, end = newLogger(o.logFormat, stderr)
	defer end()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	o.PodUID = os.Getenv("POD_UID")
	return controller.Run(ctx, o.Options)
}
