package controller

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What the API server warns of is logged as a short line of characters that show, whatever an admission policy has written (rule 28).
func TestWarningsAreLoggedAsLines(t *testing.T) {
	header, err := utilnet.NewWarningHeader(299, "", "a policy \u202ewarns "+strings.Repeat("long ", 20_000))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Warning", header)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}`))
	}))
	t.Cleanup(server.Close)
	var said []string
	o := &Options{Config: &rest.Config{Host: server.URL}, Log: funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})}
	api, err := client.New(o.settings(&serverClock{monotonic: monotonic}), client.Options{Mapper: newMapper()})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Get(t.Context(), client.ObjectKey{Name: "n1"}, &corev1.Node{}); err != nil {
		t.Fatal(err)
	}
	if len(said) != 1 || !strings.Contains(said[0], `"the API server warns" "warning"="a policy warns long`) || len(said[0]) > 2*maxWarning {
		t.Errorf("it logs %.2000q", said)
	}
}
