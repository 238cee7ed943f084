package supervisor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLocalIsTheAdministratorsCommandLine(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	r := n.run()
	r.awaitHealthy()
	if err := r.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if got := n.events(); got != "start term exit" {
		t.Errorf("the kubelet saw %q", got)
	}
	if diff := cmp.Diff(n.options.Arguments, n.entries("start")[0].Argv); diff != "" {
		t.Errorf("its command line (-want +got):\n%s", diff)
	}
	if log := r.log.String(); !strings.Contains(log, `"Starting kubelet"`) {
		t.Errorf("its log is missing in:\n%s", log)
	}
}
