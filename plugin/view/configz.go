package view

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// A NodeReader asks about one node: its kubelet, through the API server, and the API server itself. It limits time
// and memory, because a kubelet may hang, or send an endless answer.
type NodeReader struct {
	Timeout time.Duration
	Limit   int // bytes
}

// NewNodeReader returns a reader with the limits of every command. The node's own client has the same size limit.
func NewNodeReader() NodeReader {
	return NodeReader{Timeout: 5 * time.Second, Limit: 16 << 20}
}

// maxFailure limits the bytes of a failed answer that are read, and maxCause those that are printed.
const (
	maxFailure = 64 << 10
	maxCause   = 256
)

// Configz asks a kubelet, through the API server, for the KubeletConfiguration that it runs with: file, drop-in files, flags
// and defaults together. Numbers are int64 or float64. The error does not name the node: its caller does.
//
// The API server asks for `get` on nodes/proxy, whatever path of the kubelet is meant. The finer nodes/configz, which kubelets know
// since 1.32 (KubeletFineGrainedAuthz), is asked for by the kubelet alone, of those who speak to it directly.
func (r NodeReader) Configz(ctx context.Context, client kubernetes.Interface, node string) (map[string]any, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("no answer within %s", r.Timeout))
	defer cancel()
	body, err := r.get(ctx, client, func(api *rest.RESTClient) *rest.Request { return proxied(api, node, "configz") })
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("its kubelet cannot be asked what it runs with: %w; is the node Ready, and port 10250 open for the API server?", context.Cause(ctx))
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("its kubelet cannot be asked what it runs with: %w; that needs get on nodes/proxy, which is much: it can also run commands in the node's pods", err)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("its kubelet cannot be asked what it runs with: %w; is the node's name right, and enableServer and enableDebuggingHandlers true?", err)
	case apierrors.IsServiceUnavailable(err):
		return nil, fmt.Errorf("its kubelet cannot be asked what it runs with: %w; is the node Ready, and port 10250 open for the API server?", err)
	case err != nil:
		return nil, fmt.Errorf("its kubelet cannot be asked what it runs with: %w", err)
	}
	return ParseConfigz(body)
}

// get sends the request without client-go's decoding: client-go reads a whole answer into memory, and gives no
// cause for a failure without a Status in JSON.
func (r NodeReader) get(ctx context.Context, client kubernetes.Interface, what func(*rest.RESTClient) *rest.Request) ([]byte, error) {
	api, is := client.CoreV1().RESTClient().(*rest.RESTClient)
	if !is {
		return nil, errors.New("this client has no HTTP client")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, what(api).URL().String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	connection := api.Client
	if connection == nil {
		connection = http.DefaultClient
	}
	response, err := connection.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, failureOf(response)
	}
	body, err := bounded.Read(response.Body, r.Limit)
	if err != nil {
		return nil, fmt.Errorf("reading its answer: %w", err)
	}
	return body, nil
}

// proxied returns the request for a path that a kubelet serves.
func proxied(api *rest.RESTClient, node, path string) *rest.Request {
	return api.Get().Resource("nodes").Name(node).SubResource("proxy").Suffix(path)
}

// failureOf returns the error of a failed answer, with the message of the API server or of the kubelet. The text
// is made printable, as any text from a node.
func failureOf(response *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxFailure))
	said := metav1.Status{Message: string(body)}
	if json.Unmarshal(body, &said) != nil || said.Kind != "Status" {
		said = metav1.Status{Message: string(body)}
	}
	said.Status, said.Code = metav1.StatusFailure, int32(response.StatusCode)
	said.Message = cmp.Or(Shorten(bounded.Line(said.Message), maxCause), "no reason given")
	said.Message = fmt.Sprintf("%d %s: %s", response.StatusCode, http.StatusText(response.StatusCode), said.Message)
	if said.Reason == "" {
		said.Reason = map[int]metav1.StatusReason{
			http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
			http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
		}[response.StatusCode]
	}
	return &apierrors.StatusError{ErrStatus: said}
}

// ParseConfigz reads a kubelet's answer. It fails for an answer that no kubelet gives.
func ParseConfigz(body []byte) (map[string]any, error) {
	var answer map[string]map[string]any
	if err := utiljson.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("reading configz: %s", bounded.Text(bounded.Line(err.Error()), maxCause))
	}
	if !shallow(answer, maxDepth) {
		return nil, fmt.Errorf("reading configz: it is nested deeper than %d; is this a kubelet?", maxDepth)
	}
	config := answer["kubeletconfig"]
	if len(config) == 0 {
		return nil, fmt.Errorf("reading configz: it has no kubeletconfig; is this a kubelet?")
	}
	delete(config, "kind")
	delete(config, "apiVersion")
	if fields := countFields(config); fields > maxFields {
		return nil, fmt.Errorf("reading configz: it has %d fields, and %d are the most; is this a kubelet?", fields, maxFields)
	}
	return config, nil
}

// maxDepth is deeper than any KubeletConfiguration. The size of indented output grows with the square of the
// depth.
const maxDepth = 32

// shallow reports whether a tree is at most depth deep.
func shallow[V any](tree map[string]V, depth int) bool {
	for _, value := range tree {
		if !shallowValue(value, depth-1) {
			return false
		}
	}
	return true
}

func shallowValue(value any, depth int) bool {
	switch value := value.(type) {
	case map[string]any:
		return depth > 0 && shallow(value, depth)
	case []any:
		return depth > 0 && !slices.ContainsFunc(value, func(element any) bool { return !shallowValue(element, depth-1) })
	}
	return true
}

// maxFields is more than ten times the number of a kubelet's fields. A comparison takes quadratic time.
const maxFields = 2048

// countFields counts the names and items at every depth.
func countFields(value any) (count int) {
	switch v := value.(type) {
	case map[string]any:
		for _, below := range v {
			count += 1 + countFields(below)
		}
	case []any:
		for _, below := range v {
			count += 1 + countFields(below)
		}
	}
	return count
}
