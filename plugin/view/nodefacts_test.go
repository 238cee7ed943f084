package view_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// As a kubelet of 1.36 answers, shortened.
const summaryText = `{"node": {"nodeName": "n1",
 "systemContainers": [{"name": "kubelet", "memory": {"workingSetBytes": 5}}, {"name": "pods", "memory": {"availableBytes": 7, "workingSetBytes": 77}}],
 "memory": {"time": "2026-11-21T12:00:00Z", "availableBytes": 600, "usageBytes": 500, "workingSetBytes": 400},
 "fs": {"availableBytes": 50, "capacityBytes": 100, "usedBytes": 50, "inodesFree": 8, "inodes": 9},
 "runtime": {"imageFs": {"availableBytes": 51, "capacityBytes": 101}},
 "rlimit": {"time": "2026-11-21T12:00:00Z", "maxpid": 1000, "curproc": 300}},
 "pods": [{"podRef": {"name": "x"}}]}`

func nodeServer(t *testing.T, answers map[string]string) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, is := answers[r.URL.RequestURI()]
		switch {
		case answer == "hang":
			<-r.Context().Done()
		case is:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(answer))
		default:
			http.Error(w, `{"kind":"Status","reason":"Forbidden","message":"no"}`, http.StatusForbidden)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
}

const (
	summaryPath = "/api/v1/nodes/n1/proxy/stats/summary"
	podsPath    = "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"
)

func TestReadSummary(t *testing.T) {
	h, err := view.NewNodeReader().Summary(t.Context(), nodeServer(t, map[string]string{summaryPath: summaryText}), "n1")
	if err != nil || *h.Memory != (forecast.Amount{Available: 600, Capacity: 1000}) || *h.PIDs != (forecast.Amount{Available: 700, Capacity: 1000}) ||
		h.NodeFS.Bytes != (forecast.Amount{Available: 50, Capacity: 100}) || h.NodeFS.Inodes != (forecast.Amount{Available: 8, Capacity: 9}) ||
		h.ImageFS.Bytes != (forecast.Amount{Available: 51, Capacity: 101}) || h.ImageFS.Inodes != (forecast.Amount{}) || *h.PodsMemory != 77 {
		t.Errorf("%+v, %v", h, err)
	}
	if h.CPUState != nil || h.NUMANodes != nil {
		t.Errorf("a kubelet does not tell that: %+v", h)
	}
	h, err = view.NewNodeReader().Summary(t.Context(), nodeServer(t, map[string]string{summaryPath: `{"node": {"fs": {"capacityBytes": 1}}}`}), "n1")
	if err != nil || !reflect.DeepEqual(h, forecast.Host{}) {
		t.Errorf("%+v, %v", h, err)
	}
	for answer, want := range map[string]string{"<html>": "reading its kubelet's statistics", "": "403 Forbidden: no"} {
		answers := map[string]string{summaryPath: answer}
		if answer == "" {
			delete(answers, summaryPath)
		}
		if _, err := view.NewNodeReader().Summary(t.Context(), nodeServer(t, answers), "n1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

func TestReadPods(t *testing.T) {
	const list = `{"kind": "PodList", "items": [{"metadata": {"namespace": "default", "name": "a"}, "status": {"phase": "Running"}}, {"status": {"phase": "Succeeded"}}]}`
	pods, err := view.NewNodeReader().Pods(t.Context(), nodeServer(t, map[string]string{podsPath: list}), "n1")
	if err != nil || len(pods) != 1 || pods[0].Name != "a" || pods[0].Status.Phase != corev1.PodRunning {
		t.Errorf("%+v, %v", pods, err)
	}
	if _, err := view.NewNodeReader().Pods(t.Context(), nodeServer(t, nil), "n1"); err == nil || !strings.Contains(err.Error(), "its pods cannot be listed: 403 Forbidden: no") {
		t.Error(err)
	}
	if _, err := view.NewNodeReader().Pods(t.Context(), nodeServer(t, map[string]string{podsPath: list[:60]}), "n1"); err == nil {
		t.Error("a list that was cut off is not a shorter one")
	}
	if _, err := (view.NodeReader{Timeout: 100 * time.Millisecond, Limit: 1 << 20}).Pods(t.Context(), nodeServer(t, map[string]string{podsPath: "hang"}), "n1"); err == nil || !strings.Contains(err.Error(), "no answer within 100ms") {
		t.Error(err)
	}
	if _, err := (view.NodeReader{Timeout: time.Minute, Limit: 10}).Pods(t.Context(), nodeServer(t, map[string]string{podsPath: list}), "n1"); err == nil || errors.Is(err, http.ErrHandlerTimeout) {
		t.Error("it has no limit")
	}
}
