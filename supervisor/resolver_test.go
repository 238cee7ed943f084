//go:build linux

package supervisor

import (
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// A resolv.conf that is not there is refused, and starts no kubelet; one that leads pods to themselves is a warning on the Node.
func TestTheResolver(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("etc/real.conf", "nameserver 10.0.0.1\n")
	n.write("etc/stub.conf", "nameserver 127.0.0.53\n")
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: ok")+"resolvConf: "+n.path("etc/real.conf")+"\n")
	loops := make(chan *loop, 1)
	r := n.runChanged(func(l *loop) { loops <- l })
	l := <-loops
	first := r.awaitHealthy()

	l.assign(t, "gone", fakenode.Configuration("mode: ok")+"resolvConf: "+n.path("etc/gone.conf")+"\n")
	record := r.await("a refusal", func(record Record) bool { return record.Condition.Reason == "Refused" })
	if !strings.Contains(record.Condition.Message, "resolvConf names "+n.path("etc/gone.conf")+", and this node does not have that file") || record.Child.PID != first.Child.PID {
		t.Errorf("recorded %+v", record)
	}
	l.assign(t, "stub", fakenode.Configuration("mode: ok")+"resolvConf: "+n.path("etc/stub.conf")+"\n")
	record = r.await("the trial", func(record Record) bool { return record.Condition.Reason == "InTrial" && runsOf(record) == "stub" })
	if !strings.Contains(record.Condition.Message, "DNS of new pods that use the node's resolver will loop, CoreDNS's too: resolvConf is "+n.path("etc/stub.conf")) {
		t.Errorf("recorded %+v", record)
	}
}
