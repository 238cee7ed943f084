package rollout

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

func (s *script) says() string {
	text := ""
	for _, kind := range []string{"Ready", "Progressing", "Stalled"} {
		c := meta.FindStatusCondition(s.pool().Status.Conditions, kind)
		text += fmt.Sprintf("%s=%s/%s %q; ", kind, c.Status, c.Reason, c.Message)
	}
	return text
}

func (s *script) progress() (status, reason, message string) {
	c := meta.FindStatusCondition(s.pool().Status.Conditions, "Progressing")
	return string(c.Status), c.Reason, c.Message
}

func (s *script) inlineLayer(text string) {
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = []v1alpha1.Layer{inline("fleet", text)} })
	s.run(2 * time.Second)
}

func (s *script) withGPUs(cpus, gpus int) {
	for range gpus {
		s.node(func(m *machine) { m.Labels = map[string]string{"pool": "a", "gpu": "true"} })
	}
	for range cpus {
		s.node(nil)
	}
}

func gpuScript() *script {
	return newScript(0, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Layers = append(p.Spec.Layers, gpuLayer(`{"maxPods":60}`)) })
}
