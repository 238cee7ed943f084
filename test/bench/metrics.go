//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const metricsReads = 20

// metrics measures what a supervisor takes that writes its metrics into a file, and has them read from a socket.
func (b *bench) metrics(ctx context.Context) error {
	socket := filepath.Join(b.cluster.Folder, "metrics.sock")
	supervisor, version, err := b.running(ctx, "metrics", "bench-steady", b.node.kubelet(), "--trial-period=1s",
		"--metrics-file="+filepath.Join(b.cluster.Folder, "metrics.prom"), "--metrics-address=unix://"+socket)
	if err != nil {
		return err
	}
	err = b.node.awaitNode(ctx, "the trial is passed", func(v view) bool {
		return v.runs("bench-steady", version) && v.reason == "Active" && v.ready
	})
	if err != nil {
		return err
	}
	reader := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	defer reader.CloseIdleConnections()
	for range metricsReads {
		if err := readMetrics(ctx, reader); err != nil {
			return err
		}
		if err := settled(ctx, min(b.Steady, 30*time.Second)/metricsReads); err != nil {
			return err
		}
	}
	u, err := cluster.UsageOf(supervisor.PID())
	if err != nil {
		return err
	}
	b.memoryRows(fmt.Sprintf("with metrics, read %d times", metricsReads), u)
	return b.end(supervisor)
}

func readMetrics(ctx context.Context, reader *http.Client) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://supervisor/metrics", nil)
	if err != nil {
		return err
	}
	response, err := reader.Do(request)
	if err != nil {
		return fmt.Errorf("reading metrics: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && !strings.Contains(string(text), "kubelet_supervisor_") {
		err = fmt.Errorf("reading metrics: %s: %.300s", response.Status, text)
	}
	return err
}
