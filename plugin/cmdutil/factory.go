package cmdutil

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/credential"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// FieldManager is who the plugin is to the API server.
const FieldManager = "kubectl-kubelet"

// ConfigNamespace is where configurations are pushed and looked for unless --namespace says otherwise: the namespace that
// `install` makes, whose ConfigMaps nodes can read and not write.
const ConfigNamespace = deploy.Namespace

// A Factory is what the commands of one command line share.
type Factory struct {
	genericiooptions.IOStreams
	Flags *genericclioptions.ConfigFlags

	// Connect makes the client; tests put another in its place.
	Connect func() (kubernetes.Interface, error)
	// ConnectAs makes one for somebody else, by impersonation.
	ConnectAs func(user string, groups ...string) (kubernetes.Interface, error)
	// ConnectDynamic makes the one for kinds that client-go has no types for.
	ConnectDynamic func() (dynamic.Interface, error)
	// Configz asks a kubelet what it runs with.
	Configz func(ctx context.Context, client kubernetes.Interface, node string) (map[string]any, error)
	// Pods and Summary ask for what a forecast takes beside it.
	Pods    func(ctx context.Context, client kubernetes.Interface, node string) ([]corev1.Pod, error)
	Summary func(ctx context.Context, client kubernetes.Interface, node string) (forecast.Host, error)
	// Edit lets a person change a file.
	Edit func(file string) error
	Now  func() time.Time

	// interrupted is closed when a person, or the system, asks to stop.
	interrupted <-chan struct{}
	output      output
	warnings    Warnings
}

// NewFactory makes the one of a program that is run by these streams. It connects to nothing yet.
func NewFactory(streams genericiooptions.IOStreams) *Factory {
	streams.Out, streams.ErrOut = view.ToPeople(streams.Out), view.ToPeople(streams.ErrOut)
	f := &Factory{IOStreams: streams, Flags: genericclioptions.NewConfigFlags(true), Now: time.Now}
	reader := view.NewNodeReader()
	f.Configz, f.Pods, f.Summary = reader.Configz, reader.Pods, reader.Summary
	f.Flags.WithWarningPrinter(streams)
	f.warnings.Note = f.Note
	f.Flags.WithWrapConfigFn(f.confined)
	f.Edit = runEditor
	f.ConnectAs = func(user string, groups ...string) (kubernetes.Interface, error) {
		settings, err := f.Flags.ToRESTConfig()
		if err != nil {
			return nil, fmt.Errorf("reading the kubeconfig: %w", err)
		}
		if settings.Impersonate.UserName != "" { // by --as: one cannot be two
			return nil, fmt.Errorf("requests are made as %s already", settings.Impersonate.UserName)
		}
		settings = rest.CopyConfig(settings)
		settings.UserAgent = FieldManager
		settings.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		return kubernetes.NewForConfig(settings)
	}
	f.Connect = func() (kubernetes.Interface, error) {
		settings, err := f.settings()
		if err != nil {
			return nil, err
		}
		return kubernetes.NewForConfig(settings)
	}
	f.ConnectDynamic = func() (dynamic.Interface, error) {
		settings, err := f.settings()
		if err != nil {
			return nil, err
		}
		return dynamic.NewForConfig(settings)
	}
	return f
}

// confined is for whatever client is made of the flags: of those who answer, kubelets are the least trusted.
func (f *Factory) confined(settings *rest.Config) *rest.Config {
	settings = rest.CopyConfig(settings)
	credential.Confine(settings)
	settings.WarningHandlerWithContext = &f.warnings
	return settings
}

// settings are how the API server is reached.
func (f *Factory) settings() (*rest.Config, error) {
	settings, err := f.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	settings.UserAgent = FieldManager
	settings.QPS, settings.Burst = 50, 300 // kubectl's
	return settings, nil
}

// Namespace is the one that --namespace names. The kubeconfig's is not asked: it is the one of somebody's applications, and
// a configuration in it would be refused by nodes.
func (f *Factory) Namespace() string {
	if f.Flags.Namespace != nil && *f.Flags.Namespace != "" {
		return *f.Flags.Namespace
	}
	return ConfigNamespace
}

// Note tells a person something beside the result, on stderr.
func (f *Factory) Note(format string, values ...any) {
	_, _ = fmt.Fprintln(f.ErrOut, view.Sprintf(format, values))
}

// PoolClient asks for KubeletPools.
func (f *Factory) PoolClient() (dynamic.ResourceInterface, error) {
	client, err := f.ConnectDynamic()
	if err != nil {
		return nil, err
	}
	return client.Resource(v1alpha1.GroupVersion().WithResource("kubeletpools")), nil
}

// ListPools lists all of them, none where the API server does not know the kind. Who may not list what is not there is told Forbidden, so
// that discovery has to tell.
func (f *Factory) ListPools(ctx context.Context, client kubernetes.Interface) ([]view.Pool, error) {
	api, err := f.PoolClient()
	if err != nil {
		return nil, err
	}
	list, err := api.List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		if _, missing := client.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion().String()); apierrors.IsNotFound(missing) {
			return nil, nil
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	var pools []view.Pool
	for i := range list.Items {
		p, err := view.PoolOf(&list.Items[i])
		if err != nil {
			return nil, err
		}
		pools = append(pools, p)
	}
	slices.SortFunc(pools, func(a, b view.Pool) int { return cmp.Compare(a.Name, b.Name) })
	return pools, nil
}
