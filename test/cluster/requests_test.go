//go:build linux

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestAuditIsCountedByProgram(t *testing.T) {
	const own, kubelet = "kubelet-supervisor", "kubelet/v1.36.3 (linux/amd64)"
	a := newAudit(filepath.Join(t.TempDir(), "audit.log"))
	file, err := os.Create(a.path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	write := func(text string) {
		t.Helper()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	event := func(second int, id, stage, verb, resource, agent, user string, code int) {
		t.Helper()
		resource, subresource, _ := strings.Cut(resource, "/")
		write(fmt.Sprintf(`{"auditID":%q,"stage":%q,"verb":%q,"userAgent":%q,"requestReceivedTimestamp":"2026-01-01T00:00:%02d.5Z",`+
			`"user":{"username":%q},"objectRef":{"resource":%q,"subresource":%q},"responseStatus":{"code":%d}}`+"\n",
			id, stage, verb, agent, second, user, resource, subresource, code))
	}
	var taken Requests
	expect := func(own, kubelets Requests) {
		t.Helper()
		for _, r := range []*Requests{&own, &kubelets} {
			if r.Kinds == nil {
				r.Kinds = map[string]int{}
			}
			if r.Failed == nil {
				r.Failed = map[int]int{}
			}
		}
		seenOwn, seenKubelets, err := a.Take()
		taken = taken.And(seenOwn)
		seenOwn.all, seenKubelets.all = nil, nil
		if err != nil || !reflect.DeepEqual(seenOwn, own) || !reflect.DeepEqual(seenKubelets, kubelets) {
			t.Errorf("%+v and %+v, %v; expected were %+v and %+v", seenOwn, seenKubelets, err, own, kubelets)
		}
	}
	event(1, "a", "ResponseStarted", "watch", "nodes", own, "system:node:n1", 200) // stays open
	event(1, "b", "ResponseStarted", "watch", "nodes", own, "system:node:n2", 200)
	event(2, "c", "ResponseComplete", "get", "leases", own, "system:node:n1", 404)
	expect(Requests{Kinds: map[string]int{"watch nodes": 2, "get leases": 1}, Failed: map[int]int{404: 1}, Peak: 2, Watches: 2}, Requests{})

	event(3, "b", "ResponseComplete", "watch", "nodes", own, "system:node:n2", 200) // its end
	event(3, "d", "ResponseComplete", "watch", "configmaps", own, "system:node:n1", 403)
	event(4, "e", "ResponseComplete", "patch", "nodes/status", own, "system:node:n1", 200)
	event(4, "f", "ResponseComplete", "update", "leases", kubelet, "system:node:n1", 200)
	event(4, "g", "ResponseComplete", "update", "leases", own, "admin", 200) // the measurement's own
	write(`{"auditID":"h","sta`)                                             // being written
	expect(Requests{Kinds: map[string]int{"watch configmaps": 1, "patch nodes/status": 1}, Failed: map[int]int{403: 1}, Peak: 1, Watches: 1},
		Requests{Kinds: map[string]int{"update leases": 1}, Peak: 1})
	first, last := taken.Span()
	if first.Second() != 1 || last.Second() != 4 {
		t.Errorf("the first was received at %s, the last at %s", first, last)
	}
	if some := taken.Between(first.Add(time.Second), last); some.String() != "1 get leases, 1 watch configmaps" || some.Failed[404] != 1 || taken.Total() != 5 || taken.Peak != 2 {
		t.Errorf("between them: %+v; all: %+v", some, taken)
	}
	write("nonsense\n")
	if _, _, err := a.Take(); err == nil {
		t.Error("a line that is no event is not told")
	}
	r := Requests{Kinds: map[string]int{"get leases": 2, "patch nodes/status": 3, "watch nodes": 4}}
	if r.Total() != 9 || r.Writes() != 3 || r.Count("get", "watch") != 6 || r.String() != "2 get leases, 3 patch nodes/status, 4 watch nodes" {
		t.Errorf("%d, %d, %d, %s", r.Total(), r.Writes(), r.Count("get", "watch"), r)
	}
}
