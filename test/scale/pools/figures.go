//go:build linux

package pools

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const metricsPort = "127.0.0.1:8443"

// steady looks at a time in which the nodes say nothing new. It begins when the last news is over.
func (m *measurement) steady(ctx context.Context) error {
	pause(ctx, 5*time.Second)
	audit := m.cluster.ReadAudit()
	if _, err := audit.TakeOf(controllerUser); err != nil {
		return err
	}
	before, err := cluster.UsageOf(m.first.PID())
	if err != nil {
		return err
	}
	s, began := &m.figures.Steady, time.Now()
	every := 5 * time.Minute / time.Duration(m.Nodes)
	for ; time.Since(began) < m.Steady; s.Heartbeats++ {
		if err := m.heartbeat(ctx, s.Heartbeats); err != nil {
			return err
		}
		pause(ctx, time.Until(began.Add(time.Duration(s.Heartbeats+1)*every)))
	}
	s.Took = time.Since(began)
	if m.figures.Leader, err = cluster.UsageOf(m.first.PID()); err != nil {
		return err
	}
	if m.figures.Standby, err = cluster.UsageOf(m.second.PID()); err != nil {
		return err
	}
	s.Processor = m.figures.Leader.Processor - before.Processor
	if m.figures.Most, err = mostResident(m.first.PID()); err != nil {
		return err
	}
	s.Requests, err = audit.TakeOf(controllerUser)
	s.Renewals = s.Requests.Kinds["update leases"]
	s.Writes = s.Requests.Writes() - s.Renewals
	return err
}

// mostResident is what the process had resident at most, in MiB.
func mostResident(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "VmHWM:"); is {
			kibibytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kibibytes / 1024, err
		}
	}
	return 0, fmt.Errorf("the kernel does not tell the most memory of process %d", pid)
}

// decide lets one Node after the other have news, each of which leads to a decision over all.
func (m *measurement) decide(ctx context.Context) error {
	get, err := m.metrics(ctx)
	if err != nil {
		return err
	}
	countBefore, sumBefore, err := decisions(ctx, get)
	if err != nil {
		return err
	}
	before, err := cluster.UsageOf(m.first.PID())
	if err != nil {
		return err
	}
	for i := range m.News {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node(i % m.Nodes).Name}}
		body := fmt.Appendf(nil, `{"metadata":{"labels":{"cloud.example.com/news":"%d"}}}`, i)
		if err := m.admin.Patch(ctx, n, client.RawPatch(types.MergePatchType, body)); err != nil {
			return err
		}
		pause(ctx, 250*time.Millisecond)
	}
	after, err := cluster.UsageOf(m.first.PID())
	if err != nil {
		return err
	}
	count, sum, err := decisions(ctx, get)
	if err != nil {
		return err
	}
	d := &m.figures.Decide
	if d.Decisions = int(count - countBefore); d.Decisions == 0 {
		return fmt.Errorf("%d news led to no decision", m.News)
	}
	d.Mean = time.Duration((sum - sumBefore) / float64(d.Decisions) * float64(time.Second))
	d.Processor = (after.Processor - before.Processor) / time.Duration(d.Decisions)
	return nil
}

// metrics makes a reader, and gives what it reads.
func (m *measurement) metrics(ctx context.Context) (get func(context.Context) (string, error), err error) {
	for _, words := range [][]string{{"create", "serviceaccount", "reader", "-n", "default"},
		{"create", "clusterrolebinding", "reader", "--clusterrole=kubelet-supervisor-metrics-reader", "--serviceaccount=default:reader"}} {
		if _, err := m.cluster.Kubectl(ctx, words...); err != nil {
			return nil, err
		}
	}
	token, err := m.cluster.Kubectl(ctx, "create", "token", "reader", "-n", "default")
	if err != nil {
		return nil, err
	}
	// Its certificate is its own, made at its start.
	reader := &http.Client{Transport: &http.Transport{DialContext: m.cluster.Dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	return func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+metricsPort+"/metrics", nil)
		if err != nil {
			return "", err
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		answer, err := reader.Do(request)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("the metrics are refused: %s", answer.Status)
		}
		return string(text), err
	}, nil
}

// decisions are how many there were, and how many seconds they took in all.
func decisions(ctx context.Context, get func(context.Context) (string, error)) (count, sum float64, err error) {
	text, err := get(ctx)
	if err != nil {
		return 0, 0, err
	}
	for name, to := range map[string]*float64{"kubelet_supervisor_pool_decide_seconds_count ": &count, "kubelet_supervisor_pool_decide_seconds_sum ": &sum} {
		_, rest, is := strings.Cut(text, "\n"+name)
		line, _, _ := strings.Cut(rest, "\n")
		if *to, err = strconv.ParseFloat(strings.TrimSpace(line), 64); !is || err != nil {
			return 0, 0, fmt.Errorf("the metrics have no %s: %w", name, err)
		}
	}
	return count, sum, nil
}
