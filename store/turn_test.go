//go:build linux

package store

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A writer that hangs on the disk keeps nobody from reading a checkpoint that is whole.
func TestACheckpointIsReadBesideAWriterThatHangs(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	source := corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "a", UID: "1", ResourceVersion: "2", KubeletConfigKey: "kubelet"}
	if err := s.SaveCheckpoint(source, map[string]string{"kubelet": "x"}); err != nil {
		t.Fatal(err)
	}
	s.turn.Lock()
	read := make(chan error, 1)
	go func() {
		_, err := s.LoadCheckpoint(source)
		read <- err
	}()
	if err := <-read; err != nil {
		t.Error(err)
	}
	s.turn.Unlock()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
