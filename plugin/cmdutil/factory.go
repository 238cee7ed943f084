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

// FieldManager is the plugin's field manager in requests.
const FieldManager = "kubectl-kubelet"

// ConfigNamespace is where configurations are pushed to and looked for unless --namespace is given: the namespace
// that `install` makes, whose ConfigMaps nodes can read but not write.
const ConfigNamespace = deploy.Namespace

// A Factory has what the commands of one command line share.
type Factory struct {
	genericiooptions.IOStreams
	Flags *genericclioptions.ConfigFlags

	// Connect makes the client. Tests replace it.
	Connect func() (kubernetes.Interface, error)
	// ConnectAs makes a client that impersonates another user.
	ConnectAs func(user string, groups ...string) (kubernetes.Interface, error)
	// ConnectDynamic makes the client for kinds without types in client-go.
	ConnectDynamic func() (dynamic.Interface, error)
	// Configz asks a kubelet for its running configuration.
	Configz func(ctx context.Context, client kubernetes.Interface, node string) (map[string]any, error)
	// Pods and Summary get the other facts that a forecast needs.
	Pods    func(ctx context.Context, client kubernetes.Interface, node string) ([]corev1.Pod, error)
	Summary func(ctx context.Context, client kubernetes.Interface, node string) (forecast.Host, error)
	// Edit opens a file in the user's editor.
	Edit func(file string) error
	Now  func() time.Time

	// interrupted is closed when the user or the system asks the program to stop.
	interrupted <-chan struct{}
	output      output
	warnings    Warnings
}

// NewFactory returns the factory of a program with these streams. It does not connect yet.
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
		if settings.Impersonate.UserName != "" { // by --as: a client cannot impersonate two users
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

// confined limits every client made from the flags, because kubelets, the least trusted servers, answer them too.
func (f *Factory) confined(settings *rest.Config) *rest.Config {
	settings = rest.CopyConfig(settings)
	credential.Confine(settings)
	settings.WarningHandlerWithContext = &f.warnings
	return settings
}

// settings returns how to reach the API server.
func (f *Factory) settings() (*rest.Config, error) {
	settings, err := f.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	settings.UserAgent = FieldManager
	settings.QPS, settings.Burst = 50, 300 // as in kubectl
	return settings, nil
}

// Namespace returns the value of --namespace, or ConfigNamespace. It ignores the kubeconfig's namespace, because
// that belongs to the user's applications, and nodes refuse configurations there.
func (f *Factory) Namespace() string {
	if f.Flags.Namespace != nil && *f.Flags.Namespace != "" {
		return *f.Flags.Namespace
	}
	return ConfigNamespace
}

// Note prints something to stderr that is not part of the result.
func (f *Factory) Note(format string, values ...any) {
	_, _ = fmt.Fprintln(f.ErrOut, view.Sprintf(format, values))
}

// PoolClient returns a client for KubeletPools.
func (f *Factory) PoolClient() (dynamic.ResourceInterface, error) {
	client, err := f.ConnectDynamic()
	if err != nil {
		return nil, err
	}
	return client.Resource(v1alpha1.GroupVersion().WithResource("kubeletpools")), nil
}

// ListPools lists all pools; none if the API server does not know the kind. For an unknown kind, a user without
// permission gets Forbidden, so discovery has to decide.
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
