//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	corev1 "k8s.io/api/core/v1"
)

// metricsFlag makes a supervisor write metrics into a folder of the test's.
func metricsFlag(t *testing.T) (flag, path string) {
	path = filepath.Join(t.TempDir(), "kubelet_supervisor.prom")
	return "--metrics-file=" + path, path
}

// wantMetrics waits until the file has these lines, and is well formed.
func wantMetrics(t *testing.T, path string, lines ...string) {
	t.Helper()
	await(t, "the metrics say so", func() error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range lines {
			if !strings.Contains(string(text), line) {
				return fmt.Errorf("%q is missing in\n%s", line, text)
			}
		}
		problems, err := promlint.New(strings.NewReader(string(text))).Lint()
		if err == nil && len(problems) > 0 {
			err = fmt.Errorf("promtool would say %v", problems)
		}
		return err
	})
}

// labels are upstream's of a source, and the value.
func (c *configMap) labels(key string) string { return sourceSeries(c.source(key)) }

func sourceSeries(source *corev1.NodeConfigSource) string {
	if source == nil || source.ConfigMap == nil {
		return `{node_config_source="local",node_config_uid="",node_config_resource_version="",node_config_kubelet_key=""} 1`
	}
	s := source.ConfigMap
	return fmt.Sprintf(`{node_config_source="/api/v1/namespaces/%s/configmaps/%s",node_config_uid="%s",node_config_resource_version="%s",node_config_kubelet_key="%s"} 1`,
		s.Namespace, s.Name, s.UID, s.ResourceVersion, s.KubeletConfigKey)
}
