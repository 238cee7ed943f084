package controller

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/thief"
)

// Whatever client is made of the controller's settings, its token goes to the API server alone (rule 28).
func TestNoTokenForARedirect(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *Options, *rest.Config) error{
		"reads and writes": func(ctx context.Context, _ *Options, config *rest.Config) error {
			reader, err := client.New(config, client.Options{Mapper: newMapper()})
			if err != nil {
				return err
			}
			return reader.Get(ctx, client.ObjectKey{Name: "n1"}, &corev1.Node{})
		},
		"the election": func(ctx context.Context, o *Options, config *rest.Config) error {
			lock, _, err := o.elect(config)
			if err != nil {
				return err
			}
			_, _, err = lock.Get(ctx)
			return err
		},
		"events": func(ctx context.Context, _ *Options, config *rest.Config) error {
			events, err := typedcorev1.NewForConfig(config) // as recorder has it
			if err != nil {
				return err
			}
			_, err = events.Events("default").Create(ctx, &corev1.Event{}, metav1.CreateOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := thief.New(t, http.StatusTemporaryRedirect)
			o := &Options{Config: server.Config(), Log: logr.Discard(), LeaderElect: true, Namespace: "kubelet-supervisor"}
			if err := ask(t.Context(), o, o.settings(&serverClock{monotonic: monotonic})); err == nil {
				t.Error("a redirect is taken for an answer")
			}
			server.Expect(t)
		})
	}
}

// Who asks for metrics with a token of their own learns no more from a redirect than that the reviews failed.
func TestReviewsFollowNoRedirect(t *testing.T) {
	server := thief.New(t, http.StatusPermanentRedirect)
	o := &Options{Config: server.Config(), Log: logr.Discard()}
	config := o.settings(&serverClock{monotonic: monotonic})
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := authorized(config, connection)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the metrics were shown") }))
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	request.Header.Set("Authorization", "Bearer a scraper's token")
	answer := httptest.NewRecorder()
	if handler.ServeHTTP(answer, request); answer.Code != http.StatusInternalServerError {
		t.Errorf("answered %d %s", answer.Code, answer.Body)
	}
	server.Expect(t)
}
