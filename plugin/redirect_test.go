package plugin

import (
	"context"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/thief"
)

// A kubelet that answers with a redirect is given nobody's token, whatever it is asked for, and by whichever client (rule 28).
func TestNoTokenForARedirect(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *cmdutil.Factory) error{
		"configz": func(ctx context.Context, f *cmdutil.Factory) error {
			client, err := f.Connect()
			if err != nil {
				return err
			}
			_, err = f.Configz(ctx, client, "n1")
			return err
		},
		"statistics": func(ctx context.Context, f *cmdutil.Factory) error {
			client, err := f.Connect()
			if err != nil {
				return err
			}
			_, err = f.Summary(ctx, client, "n1")
			return err
		},
		"pods": func(ctx context.Context, f *cmdutil.Factory) error {
			client, err := f.Connect()
			if err != nil {
				return err
			}
			_, err = f.Pods(ctx, client, "n1")
			return err
		},
		"a Node": func(ctx context.Context, f *cmdutil.Factory) error {
			client, err := f.Connect()
			if err != nil {
				return err
			}
			_, err = client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
			return err
		},
		"as somebody else": func(ctx context.Context, f *cmdutil.Factory) error {
			client, err := f.ConnectAs("jane")
			if err != nil {
				return err
			}
			_, err = client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
			return err
		},
		"a pool": func(ctx context.Context, f *cmdutil.Factory) error {
			client, err := f.ConnectDynamic()
			if err != nil {
				return err
			}
			_, err = client.Resource(poolsResource()).Get(ctx, "workers", metav1.GetOptions{})
			return err
		},
		"kinds": func(_ context.Context, f *cmdutil.Factory) error {
			client, err := f.Flags.ToDiscoveryClient()
			if err != nil {
				return err
			}
			_, err = client.ServerVersion()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := thief.New(t, http.StatusFound)
			f := cmdutil.NewFactory(genericiooptions.NewTestIOStreamsDiscard())
			*f.Flags.KubeConfig = thief.Kubeconfig(t, server.URL, thief.Users["token"])
			*f.Flags.CacheDir = t.TempDir()
			if err := ask(t.Context(), f); err == nil {
				t.Error("a redirect is taken for an answer")
			}
			server.Expect(t)
		})
	}
}
