package plugin

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"
)

// readConfigz asks a kubelet, through the API server, for the KubeletConfiguration that it runs with: file, drop-in files, flags
// and defaults together. Numbers are int64 or float64.
//
// The API server asks for `get` on nodes/proxy, whatever path of the kubelet is meant. The finer nodes/configz, which kubelets know
// since 1.32 (KubeletFineGrainedAuthz), is asked for by the kubelet alone, of those who speak to it directly.
func readConfigz(ctx context.Context, client kubernetes.Interface, node string) (map[string]any, error) {
	body, err := client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("configz").DoRaw(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("reading what the kubelet of %s runs with: %w; who reads it needs get on nodes/proxy, which is much: it can also run commands in the node's pods", node, err)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading what the kubelet of %s runs with: %w; is the node's name right, and enableServer and enableDebuggingHandlers true?", node, err)
	case err != nil:
		return nil, fmt.Errorf("reading what the kubelet of %s runs with: %w; is the node Ready, and port 10250 open for the API server?", node, err)
	}
	return parseConfigz(body)
}

func parseConfigz(body []byte) (map[string]any, error) {
	var answer map[string]map[string]any
	if err := utiljson.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("reading configz: %w", err)
	}
	config := answer["kubeletconfig"]
	if len(config) == 0 {
		return nil, fmt.Errorf("reading configz: it has no kubeletconfig; is this a kubelet?")
	}
	delete(config, "kind")
	delete(config, "apiVersion")
	return config, nil
}
