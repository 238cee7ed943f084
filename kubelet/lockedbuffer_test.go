package kubelet

import (
	"bytes"
	"io"
	"os"
	"sync"
	"testing"
)

// lockedBuffer remembers what is written into its pipe.
type lockedBuffer struct {
	pipe *os.File
	mu   sync.Mutex
	data bytes.Buffer
}

func newLockedBuffer(t *testing.T) *lockedBuffer {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &lockedBuffer{pipe: writer}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(b, reader)
	}()
	t.Cleanup(func() { writer.Close(); <-over; reader.Close() })
	return b
}

func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(data)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}
