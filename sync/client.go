package sync

import (
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/credential"
)

// RequestTimeout bounds every API request except watches, answer included.
const RequestTimeout = 10 * time.Second

// Requests per second, and how many at once before that holds: the kubelet's own limits (kubeAPIQPS and kubeAPIBurst of
// Kubernetes 1.36). With client-go's 5 and 10, changes in quick succession would wait for the limiter.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 100
)

// maxAnswer bounds what is read of one answer that is not a watch, in bytes. The largest ConfigMap, 1 MiB, takes six times
// that in JSON when every byte needs an escape.
const maxAnswer = 16 << 20

// Client is what the package needs of a Kubernetes client: a REST client whose scheme knows the kinds of NewClient.
type Client = rest.Interface

// NewClient gives a client for core/v1 whose scheme knows Nodes, ConfigMaps, Events and the meta types: a fraction of the
// memory of the typed client set. config is not changed; its credentials and TLS settings are used as they are.
// Retries are left to the callers, who have backoffs of their own.
func NewClient(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(newScheme()).WithoutConversion()
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	config.UserAgent = "kubelet-supervisor"
	config.Timeout = 0 // it would end watches too; each request sets its own
	config.WarningHandler = rest.NoWarnings{}
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	}
	credential.Confine(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedAnswers{next} })
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the API server at %s: %w", config.Host, err)
	}
	return client, nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion,
		&corev1.Node{}, &corev1.NodeList{}, &corev1.ConfigMap{}, &corev1.ConfigMapList{}, &corev1.Event{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	scheme.AddKnownTypes(metav1.SchemeGroupVersion, &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{})
	return scheme
}

// boundedAnswers fails the reading of an answer longer than maxAnswer. Watches are endless; client-go bounds their events.
type boundedAnswers struct{ next http.RoundTripper }

func (b boundedAnswers) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err == nil && response.Body != nil && !request.URL.Query().Has("watch") {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}
