package controller

import (
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/thief"
)

// Whatever client is made of the controller's settings, its token goes to the API server alone (rule 28).
func TestNoTokenForARedirect(t *testing.T) {
	server := thief.New(t, http.StatusTemporaryRedirect)
	o := &Options{Config: server.Config(), Log: logr.Discard()}
	reader, err := client.New(o.settings(&serverClock{monotonic: monotonic}), client.Options{Mapper: newMapper()})
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Get(t.Context(), client.ObjectKey{Name: "n1"}, &corev1.Node{}); err == nil {
		t.Error("a redirect is taken for an answer")
	}
	server.Expect(t)
}
