//go:build linux

package kubelet

import (
	"net"
	"os"
	"slices"
	"testing"
)

func TestWhoListensAtAPort(t *testing.T) {
	listening, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(listening.Addr().(*net.TCPAddr).Port)
	if pids := ListeningAt(1, port); !slices.Contains(pids, os.Getpid()) {
		t.Errorf("%v listen, and we are %d", pids, os.Getpid())
	}
	if err := listening.Close(); err != nil {
		t.Fatal(err)
	}
	if pids := ListeningAt(port); len(pids) > 0 {
		t.Errorf("%v listen, and nobody does", pids)
	}
}
