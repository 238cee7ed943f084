//go:build linux

package metrics

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// run runs something beside the test, which waits for its end.
func run(t *testing.T, what func(context.Context)) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { what(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}

func has(path, line string) func() bool {
	return func() bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(text), line)
	}
}

// The file is there at once, for everybody to read, and follows changes. Nothing else is left in the folder, where every file is read.
func TestTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "supervisor.prom")
	w := newWorld(Counts{})
	run(t, func(ctx context.Context) { w.Keep(ctx, path, zap.NewNop()) })
	await(t, "the file is there", has(path, ours+"kubelet_healthy 0\n"))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	w.hear(core.Healthy{}, nil, healthy(true))
	await(t, "it is healthy", has(path, ours+"kubelet_healthy 1\n"))
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
}

// An old file means a supervisor that does not run, so it is written each minute also where nothing changes: by another one that is renamed into
// its place, for who reads the old one reads all of it.
func TestTheFileIsWrittenEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "supervisor.prom")
		begin := time.Now()
		m := New("v1.2.3", Counts{}, func() time.Duration { return time.Since(begin) })
		run(t, func(ctx context.Context) { m.Keep(ctx, path, zap.NewNop()) })
		pass := func(long time.Duration) {
			<-time.After(long)
			synctest.Wait()
		}
		pass(0)
		first, is := openSeen(t, path)
		if !is("kubelet_unhealthy_seconds_total 0\n") {
			t.Error("it begins with something else")
		}
		pass(rewriteEvery - time.Nanosecond)
		if now, _ := openSeen(t, path); !os.SameFile(first, now) {
			t.Error("it was written anew, and nothing has changed")
		}
		pass(time.Nanosecond)
		second, isNow := openSeen(t, path)
		if os.SameFile(first, second) || second.Mode().Perm() != 0o644 || !isNow("kubelet_unhealthy_seconds_total 60\n") {
			t.Errorf("after a minute it is not written anew, as another file for all to read: %v", second.Mode())
		}
		if !is("kubelet_unhealthy_seconds_total 0\n") {
			t.Error("the old one was written to")
		}
		pass(settle)
		m.poke()
		pass(0)
		if third, _ := openSeen(t, path); os.SameFile(second, third) {
			t.Error("it does not follow a change")
		}
	})
}

// openSeen keeps a file open, so that no other gets its inode, and tells what is in it by then.
func openSeen(t *testing.T, path string) (info os.FileInfo, has func(line string) bool) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if info, err = file.Stat(); err != nil {
		t.Fatal(err)
	}
	return info, func(line string) bool {
		text, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<20))
		return err == nil && strings.Contains(string(text), line)
	}
}

// Beside a socket there is loopback, for those who ask over TCP.
func TestLoopback(t *testing.T) {
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	run(t, func(ctx context.Context) { newWorld(Counts{}).Serve(ctx, address, zap.NewNop()) })
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	await(t, "it answers", func() bool {
		code, text, err := ask(t, &http.Client{Transport: transport}, http.MethodGet, "/metrics")
		return err == nil && code == http.StatusOK && strings.Contains(text, ours+"build_info")
	})
}

// A folder that is not there is said once, and is no trouble when it comes.
func TestAFolderThatComesLater(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "node-exporter")
	path := filepath.Join(folder, "supervisor.prom")
	sink, logs := observer.New(zap.WarnLevel)
	w := newWorld(Counts{})
	run(t, func(ctx context.Context) { w.Keep(ctx, path, zap.New(sink)) })
	await(t, "it is said", func() bool { return logs.Len() > 0 })
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	w.hear(core.Healthy{}, nil, healthy(true))
	await(t, "the file is there", has(path, "kubelet_healthy 1"))
	if logs.Len() != 1 {
		t.Errorf("said were %v", logs.All())
	}
}

func TestAddresses(t *testing.T) {
	for address, good := range map[string]bool{
		"127.0.0.1:10247": true, "[::1]:10247": true, "127.8.8.8:1": true, "unix:///run/x.sock": true,
		"": false, ":10247": false, "0.0.0.0:10247": false, "[::]:1": false, "10.0.0.1:10247": false, "localhost:10247": false, "127.0.0.1": false, "127.0.0.1:0": false,
		"unix://relative": false, "unix:///": false, "unix:///run/": false, "unix:///" + strings.Repeat("x", 100): false, "/run/x.sock": false, "http://127.0.0.1:1": false,
	} {
		if err := CheckAddress(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func client(t *testing.T, socket string) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func ask(t *testing.T, c *http.Client, method, path string) (code int, text string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://supervisor"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	content, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(content), errors.Join(err, answer.Body.Close())
}

// A socket that an earlier supervisor left is taken over, for its group and nobody else.
func TestTheSocket(t *testing.T) {
	folder, err := os.MkdirTemp("", "metrics-") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket := filepath.Join(folder, "s")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	w := newWorld(Counts{})
	run(t, func(ctx context.Context) { w.Serve(ctx, "unix://"+socket, zap.NewNop()) })
	c := client(t, socket)
	await(t, "it answers", func() bool {
		code, text, err := ask(t, c, http.MethodGet, "/metrics")
		return err == nil && code == http.StatusOK && strings.Contains(text, ours+"build_info")
	})
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if code, _, err := ask(t, c, http.MethodGet, "/"); code != http.StatusNotFound {
		t.Errorf("%d %v", code, err)
	}
	if code, _, err := ask(t, c, http.MethodPost, "/metrics"); code != http.StatusMethodNotAllowed {
		t.Errorf("%d %v", code, err)
	}
	if err := newWorld(Counts{}).serve(t.Context(), "unix://"+socket); err == nil || !strings.Contains(err.Error(), "another program listens") {
		t.Errorf("a second one: %v", err)
	}
}

// What is no socket is not removed.
func TestAFileInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	sink, logs := observer.New(zap.WarnLevel)
	run(t, func(ctx context.Context) { newWorld(Counts{}).Serve(ctx, "unix://"+path, zap.New(sink)) })
	await(t, "it is said", func() bool { return logs.Len() > 0 })
	if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
		t.Errorf("%q %v", text, err)
	}
}
