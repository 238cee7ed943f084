//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// A look at a change makes etcd read this Node alone, with an old API server and with a new one: pods of other nodes cost nothing.
func TestLooksAreCheapForEtcd(t *testing.T) {
	for _, version := range []string{keepsTheAPI, newest} {
		t.Run(version, func(t *testing.T) { looksAreCheapForEtcd(t, version) })
	}
}

// The last API server whose lists are read from etcd where nobody asks for others.
func TestLongLooksAreCheapForEtcd(t *testing.T) { looksAreCheapForEtcd(t, beforeCached) }

func looksAreCheapForEtcd(t *testing.T, version string) {
	n := nodeOf(t, version)
	s := n.startedLocal(t, options{})
	const others = 60
	for i := range others {
		pod := podManifest(fmt.Sprintf("elsewhere-%d", i), spec("nodeName", fmt.Sprintf("other-%d", i%3)))
		n.must(t, http.MethodPost, podsFolder, pod, nil)
		path := fmt.Sprintf("%s/elsewhere-%d?gracePeriodSeconds=0", podsFolder, i)
		t.Cleanup(func() { n.remove(t, path) })
	}
	if before := n.fetchedPods(t); version != newest {
		var list corev1.PodList
		n.must(t, http.MethodGet, "/api/v1/pods?fieldSelector=spec.nodeName=n1", nil, &list)
		if got := n.fetchedPods(t) - before; got < others {
			t.Fatalf("a list without a resourceVersion fetches %d pods, so the metric does not measure what it should", got)
		}
	}

	before := n.fetchedPods(t)
	file := filepath.Join(s.Folder, "pods-30.yaml")
	writeFile(t, file, n.kubeletConfig(with("maxPods", 30)))
	words := append([]string{"check", "--impact", "--state-dir=" + s.StateDir, "--run-dir=" + s.RunDir, file, "--"}, n.kubeletCommandLine(s)...)
	for range 5 {
		awaitAnswer(t, func() (string, int) {
			stdout, stderr, code := s.run(t, words...)
			if strings.Contains(stdout, "unknown: ") {
				t.Error(stdout)
			}
			return stdout + stderr, code
		}, 0, "none of 0 running pods would be killed at the restart")
	}
	thirty := n.putConfigMap(t, "thirty-pods", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 30))})
	n.assign(t, thirty.assignment("kubelet"))
	n.awaitReason(t, thirty.assignment("kubelet"), "Active")
	if log := s.log(t); !strings.Contains(log, "what the change would do to running pods") {
		t.Error("nobody has looked at the change")
	}
	if got := n.fetchedPods(t) - before; got != 0 {
		t.Errorf("etcd has given the API server %d pods, want 0", got)
	}
	n.unassign(t)
	n.awaitReason(t, "", "Local")
}

// fetchedPods is how many pods etcd has given the API server in lists, by the API server's own metric.
func (n *node) fetchedPods(t *testing.T) (count int) {
	t.Helper()
	client, err := rest.HTTPClientFor(n.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.AdminConfig().Host+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	found := false
	for lines := bufio.NewReader(answer.Body); ; {
		line, err := lines.ReadString('\n')
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if strings.HasPrefix(name, "apiserver_storage_list_fetched_objects_total{") && strings.Contains(name, `resource="pods"`) {
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			found = true
			count += int(number)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !found {
		t.Fatal("the API server has no metric of the pods that it has fetched in lists")
	}
	return count
}
