//go:build linux

package supervisor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// serve answers every request with the status, until the test ends, and gives its host:port.
func serve(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestHealthzOfAnotherProcessIsNotHealth(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	address := serve(t, http.StatusOK)
	n.options.Arguments = append(n.options.Arguments, "--healthz-port="+address[strings.LastIndexByte(address, ':')+1:])
	r := n.run()
	name, err := os.ReadFile("/proc/self/comm") // whatever the test binary is called
	if err != nil {
		t.Fatal(err)
	}
	held := fmt.Sprintf("its healthz port %s is held by another process (%s, pid %d)", address[strings.LastIndexByte(address, ':')+1:], strings.TrimSpace(string(name)), os.Getpid())
	record := r.await("the reason", func(record Record) bool { return strings.Contains(record.Condition.Message, held) })
	if record.Healthy || record.Condition.Status == "True" || record.Child == nil || len(record.Exits) != 0 {
		t.Errorf("recorded %+v", record)
	}
}

func TestASlowKubelet(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: slow, after: 500ms"))
	r := n.run()
	r.await("a kubelet that is not healthy yet", func(record Record) bool { return record.Child != nil && !record.Healthy && record.Phase == "Starting" })
	if record := r.awaitHealthy(); len(record.Exits) != 0 || record.Phase != "Running" {
		t.Errorf("recorded %+v", record)
	}
}
