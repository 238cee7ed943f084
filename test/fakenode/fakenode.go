// Package fakenode is what tests of a node with the fake kubelet share: the kubelet itself, built once, the machine around it, and waiting
// for what is to happen. It is for tests alone, and knows nothing of what they test.
package fakenode

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakeruntime"
)

// BuiltVariable names a fake kubelet that is built already, for tests that are run again and again.
const BuiltVariable = "KUBELET_SUPERVISOR_TEST_FAKE_KUBELET"

// Patience is how long tests wait for what should take a fraction of it.
const Patience = 90 * time.Second

// Await waits until it holds. what is for the failure, if it never does.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("waited %s in vain for: %s", Patience, what)
		}
	}
}

// Configuration gives a KubeletConfiguration that makes the fake kubelet behave so, such as "mode: ok".
func Configuration(behaviour string) string {
	return "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfake: {" + behaviour + "}\n"
}

// Build builds the fake kubelet into the folder and gives its path. It is for TestMain.
func Build(folder string) (string, error) {
	if built := os.Getenv(BuiltVariable); built != "" {
		return built, nil
	}
	path := filepath.Join(folder, "kubelet")
	build := exec.Command("go", "build", "-o", path, "github.com/kubelet-supervisor/kubelet-supervisor/test/fakekubelet")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the fake kubelet: %w\n%s", err, output)
	}
	return path, nil
}

// FreePort gives a port of the loopback address that nobody listens on now.
func FreePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// Listen accepts connections and closes them, until the test ends.
func Listen(t testing.TB, network, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-over })
	return listener
}

// Runtime serves a container runtime at this socket, until the test ends.
func Runtime(t testing.TB, socket string) {
	t.Helper()
	stop, err := fakeruntime.Serve(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
}

// Output remembers what is written into its Pipe.
type Output struct {
	Pipe *os.File
	mu   sync.Mutex
	data bytes.Buffer
}

// NewOutput gives one that ends with the test.
func NewOutput(t testing.TB) *Output {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := &Output{Pipe: writer}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(o, reader)
	}()
	t.Cleanup(func() { _ = writer.Close(); <-over; _ = reader.Close() })
	return o
}

// Write remembers.
func (o *Output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.Write(data)
}

// String is all that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.String()
}
