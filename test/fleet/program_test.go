//go:build e2e

package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// own starts a controller for this test alone.
func (f *fleet) own(t *testing.T, name string, flags ...string) *cluster.Program {
	t.Helper()
	p, err := f.launch(name, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(p.LastWords())
		}
	})
	return p
}

// get asks a program in the cluster's namespace.
func (f *fleet) get(ctx context.Context, to *http.Client, url, token string) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := to.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// health is the code of a probe's answer; 0 is none.
func (f *fleet) health(ctx context.Context, probe, port string) int {
	to := &http.Client{Transport: &http.Transport{DialContext: f.Dial, DisableKeepAlives: true}, Timeout: 2 * time.Second}
	code, _, _ := f.get(ctx, to, "http://127.0.0.1:"+port+"/"+probe, "")
	return code
}

// until polls until it holds.
func until(t *testing.T, what string, within time.Duration, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); wait(t.Context(), 100*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain until %s", within, what)
		}
	}
}

func said(p *cluster.Program, words string) func() bool {
	return func() bool {
		text, _ := p.LogFrom(0)
		return strings.Contains(text, words)
	}
}

var bares atomic.Int32 // that were brought up

// bare is a cluster without anything of ours, and with the controller of this tree as its program.
func bare(t *testing.T) *fleet {
	t.Helper()
	f := fresh(t)
	f.binary = shared(t).binary
	return f
}

// fresh is a cluster without anything of ours.
func fresh(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{}
	var err error
	if f.Cluster, err = cluster.Up(t.Context(), cluster.Options{Name: fmt.Sprintf("fleet-bare-%d-%d", os.Getpid(), bares.Add(1)), Log: t.Output()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Down(); err != nil {
			t.Error(err)
		}
	})
	if f.admin, err = newClient(f.AdminConfig()); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fleet) lease(t *testing.T) (l coordinationv1.Lease) {
	t.Helper()
	as, err := client.New(f.AdminConfig(), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := as.Get(t.Context(), types.NamespacedName{Namespace: "kubelet-supervisor", Name: "kubelet-supervisor-controller"}, &l); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return l
}

func holder(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// The program waits for an API server that is away and for the KubeletPools' definition, alive but not ready, and says for what it waits. A
// second one is ready while it stands by, and leads as soon as the first one is asked to end.
func TestTheProgramWaitsAndGivesWay(t *testing.T) {
	t.Parallel()
	f := bare(t)
	healthy := func(probe, port string, code int) func() bool {
		return func() bool { return f.health(t.Context(), probe, port) == code }
	}
	f.StopAPIServer()
	first := f.own(t, "first", "--health-address=127.0.0.1:8081")
	until(t, "it says that nobody answers", 30*time.Second, said(first, "the API server does not answer"))
	until(t, "it is alive", 10*time.Second, healthy("healthz", "8081", http.StatusOK))
	if code := f.health(t.Context(), "readyz", "8081"); code != http.StatusInternalServerError {
		t.Errorf("without an API server its readiness is %d", code)
	}
	impatient := f.own(t, "impatient")
	until(t, "another one waits, too", 30*time.Second, said(impatient, "the API server does not answer"))
	if err := impatient.Stop(10 * time.Second); err != nil || impatient.Err != nil {
		t.Errorf("asked to end while it waits, it ends with %v, %v", err, impatient.Err)
	}
	if err := f.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.applyAllBut(t, "crd.yaml")
	until(t, "it says what is missing", 60*time.Second, said(first, "crd.yaml"))
	if alive, ready := f.health(t.Context(), "healthz", "8081"), f.health(t.Context(), "readyz", "8081"); alive != http.StatusOK || ready != http.StatusInternalServerError {
		t.Errorf("without KubeletPools it is alive: %d, ready: %d", alive, ready)
	}
	if _, err := f.Kubectl(t.Context(), "apply", "--server-side", "-f", filepath.Join(scratch, "bare", "crd.yaml")); err != nil {
		t.Fatal(err)
	}
	until(t, "it is ready", 90*time.Second, healthy("readyz", "8081", http.StatusOK))
	until(t, "it leads", 30*time.Second, func() bool { l := f.lease(t); return holder(&l) != "" })
	leads := f.lease(t)
	f.own(t, "second", "--health-address=127.0.0.1:8082")
	until(t, "the other is ready, too", 60*time.Second, healthy("readyz", "8082", http.StatusOK))
	if now := f.lease(t); holder(&now) != holder(&leads) {
		t.Errorf("%s leads instead of %s", holder(&now), holder(&leads))
	}
	f.givesWay(t, first)
}

// givesWay: a leader that is asked to end gives its Lease back, for nobody could take it before it ends by itself.
func (f *fleet) givesWay(t *testing.T, leader *cluster.Program) {
	t.Helper()
	before := f.lease(t)
	if err := leader.Stop(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	if leader.Err != nil {
		t.Errorf("asked to end, it ends with %v", leader.Err)
	}
	var now coordinationv1.Lease
	until(t, "the other leads", 60*time.Second, func() bool {
		now = f.lease(t)
		return holder(&now) != "" && holder(&now) != holder(&before)
	})
	took := now.Spec.AcquireTime.Sub(before.Spec.RenewTime.Time)
	if lasts := time.Duration(*before.Spec.LeaseDurationSeconds) * time.Second; took >= lasts {
		t.Errorf("the other leads %v after the last renewal, so it has waited for the Lease's end after %v", took, lasts)
	}
	t.Logf("the other leads %v after the last renewal that was seen", took.Round(time.Millisecond))
}

// applyAllBut applies the manifests without one of the controller's, and leaves that in scratch/bare.
func (f *fleet) applyAllBut(t *testing.T, file string) {
	t.Helper()
	base, folder := filepath.Join(scratch, "manifests"), filepath.Join(scratch, "bare")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(base, "controller"))); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(folder, "kustomization.yaml")
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, []byte(strings.Replace(string(text), "- "+file+"\n", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{base, folder} {
		if _, err := f.Kubectl(t.Context(), "apply", "--server-side", "-k", of); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.bindControllers(t.Context()); err != nil {
		t.Fatal(err)
	}
}
