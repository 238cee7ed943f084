package plugin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/credential"
	"github.com/kubelet-supervisor/kubelet-supervisor/packaging"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// fieldManager is who the plugin is to the API server.
const fieldManager = "kubectl-kubelet"

// configNamespace is where configurations are pushed and looked for unless --namespace says otherwise: the namespace that
// `install` makes, whose ConfigMaps nodes can read and not write.
const configNamespace = packaging.Namespace

// A session is what the commands of one command line share.
type session struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags

	// connect makes the client; tests put another in its place.
	connect func() (kubernetes.Interface, error)
	// connectAs makes one for somebody else, by impersonation.
	connectAs func(user string, groups ...string) (kubernetes.Interface, error)
	// connectDynamic makes the one for kinds that client-go has no types for.
	connectDynamic func() (dynamic.Interface, error)
	// configz asks a kubelet what it runs with.
	configz func(ctx context.Context, client kubernetes.Interface, node string) (map[string]any, error)
	// pods and summary ask for what a forecast takes beside it.
	pods    func(ctx context.Context, client kubernetes.Interface, node string) ([]corev1.Pod, error)
	summary func(ctx context.Context, client kubernetes.Interface, node string) (forecast.Host, error)
	// edit lets a person change a file.
	edit func(file string) error
	now  func() time.Time

	// interrupted is closed when a person, or the system, asks to stop.
	interrupted <-chan struct{}
	output      output
	warnings    warnings
}

func newSession(streams genericiooptions.IOStreams) *session {
	streams.Out, streams.ErrOut = view.ToPeople(streams.Out), view.ToPeople(streams.ErrOut)
	s := &session{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true), now: time.Now}
	reader := view.NewNodeReader()
	s.configz, s.pods, s.summary = reader.Configz, reader.Pods, reader.Summary
	s.flags.WithWarningPrinter(streams)
	s.warnings.note = s.note
	s.flags.WithWrapConfigFn(s.confined)
	s.edit = s.runEditor
	s.connectAs = func(user string, groups ...string) (kubernetes.Interface, error) {
		settings, err := s.flags.ToRESTConfig()
		if err != nil {
			return nil, fmt.Errorf("reading the kubeconfig: %w", err)
		}
		if settings.Impersonate.UserName != "" { // by --as: one cannot be two
			return nil, fmt.Errorf("requests are made as %s already", settings.Impersonate.UserName)
		}
		settings = rest.CopyConfig(settings)
		settings.UserAgent = fieldManager
		settings.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		return kubernetes.NewForConfig(settings)
	}
	s.connect = func() (kubernetes.Interface, error) {
		settings, err := s.settings()
		if err != nil {
			return nil, err
		}
		return kubernetes.NewForConfig(settings)
	}
	s.connectDynamic = func() (dynamic.Interface, error) {
		settings, err := s.settings()
		if err != nil {
			return nil, err
		}
		return dynamic.NewForConfig(settings)
	}
	return s
}

// confined is for whatever client is made of the flags: of those who answer, kubelets are the least trusted.
func (s *session) confined(settings *rest.Config) *rest.Config {
	settings = rest.CopyConfig(settings)
	credential.Confine(settings)
	settings.WarningHandlerWithContext = &s.warnings
	return settings
}

// settings are how the API server is reached.
func (s *session) settings() (*rest.Config, error) {
	settings, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	settings.UserAgent = fieldManager
	settings.QPS, settings.Burst = 50, 300 // kubectl's
	return settings, nil
}

// namespace is the one that --namespace names. The kubeconfig's is not asked: it is the one of somebody's applications, and
// a configuration in it would be refused by nodes.
func (s *session) namespace() string {
	if s.flags.Namespace != nil && *s.flags.Namespace != "" {
		return *s.flags.Namespace
	}
	return configNamespace
}

// note tells a person something beside the result, on stderr.
func (s *session) note(format string, values ...any) {
	_, _ = fmt.Fprintln(s.ErrOut, view.Sprintf(format, values))
}
