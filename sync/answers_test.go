package sync

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a look waits for is told on the Node, so its words are the same from try to try: without ports, and without versions.
func TestErrorsAreToldInTheSameWords(t *testing.T) {
	reset := func(port int) error {
		local := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port}
		return &url.Error{Op: "Get", URL: "https://10.0.0.2", Err: &net.OpError{Op: "read", Net: "tcp", Source: local, Err: syscall.ECONNRESET}}
	}
	behind := func(version int) error {
		err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, version-1), 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return err
	}
	for name, make := range map[string]func(try int) error{"a connection": reset, "a memory that is behind": behind} {
		first, second := steady(make(41)), steady(make(42))
		if first.Error() != second.Error() {
			t.Errorf("%s: %q, then %q", name, first, second)
		}
	}
	if err := steady(behind(7)); !CacheIsBehind(fmt.Errorf("listing: %w", err)) {
		t.Errorf("it is not known any more what it is: %v", err)
	}
	if err := steady(io.EOF); !errors.Is(err, io.EOF) || err.Error() != "the API server cannot be reached: EOF" {
		t.Error(err)
	}
}
