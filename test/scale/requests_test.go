package scale

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func auditLine(second int, stage, verb, resource, user string, code int) string {
	resource, subresource, _ := strings.Cut(resource, "/")
	return fmt.Sprintf(`{"stage":%q,"verb":%q,"userAgent":"a","requestReceivedTimestamp":"2026-01-01T00:00:%02d.5Z","user":{"username":%q},`+
		`"objectRef":{"resource":%q,"subresource":%q},"responseStatus":{"code":%d}}`+"\n", stage, verb, second, user, resource, subresource, code)
}

const someNode = "system:node:n1"

func TestAuditTailCountsRequestsOfNodes(t *testing.T) {
	a := &auditTail{}
	if _, err := a.take(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		auditLine(1, "ResponseStarted", "watch", "nodes", someNode, 200),
		auditLine(1, "ResponseComplete", "watch", "nodes", someNode, 200), // its end
		auditLine(1, "ResponseComplete", "watch", "configmaps", someNode, 403),
		auditLine(1, "ResponseComplete", "patch", "nodes/status", "system:node:n2", 200),
		auditLine(2, "ResponseComplete", "get", "leases", someNode, 404),
		auditLine(2, "ResponseComplete", "update", "leases", "admin", 200), // the measurement's own
	} {
		if err := a.count([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	seen, err := a.take()
	expected := Requests{Kinds: map[string]int{"watch nodes": 1, "watch configmaps": 1, "patch nodes/status": 1, "get leases": 1}, Failed: map[int]int{403: 1, 404: 1}, Peak: 3}
	if err != nil || !reflect.DeepEqual(seen, expected) || seen.Total() != 4 {
		t.Errorf("%+v, %v; expected was %+v", seen, err, expected)
	}
	if again, err := a.take(); err != nil || again.Total() != 0 || again.Peak != 0 {
		t.Errorf("what was taken is counted again: %+v, %v", again, err)
	}
	if err := a.count([]byte("nonsense\n")); err == nil {
		t.Error("a line that is no event is not told")
	}
}

// The API server moves its log away when that is large, and begins another.
func TestAuditTailFollowsARotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	a := &auditTail{path: path}
	if _, err := a.take(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		a.follow(ctx)
	}()
	line := auditLine(1, "ResponseComplete", "get", "leases", someNode, 200)
	total := 0
	await := func(expected int) {
		t.Helper()
		deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for total < expected {
			seen, err := a.take()
			if total += seen.Total(); err != nil || deadline.Err() != nil {
				t.Fatalf("%d of %d requests were counted: %v", total, expected, err)
			}
			pause(deadline, 10*time.Millisecond)
		}
	}
	write(line + line[:20])
	await(1) // it has opened the file
	write(line[20:])
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write(line)
	await(3)
	stop()
	<-over
}
