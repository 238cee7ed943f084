//go:build linux

package host

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"golang.org/x/net/http2"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

const (
	imageFsInfo   = "/runtime.v1.ImageService/ImageFsInfo"
	runtimeConfig = "/runtime.v1.RuntimeService/RuntimeConfig"
	version       = "/runtime.v1.RuntimeService/Version"

	deadlineExceeded = "4" // a gRPC status
	unimplemented    = "12"
	unavailable      = "14"

	maximalAnswer  = 1 << 20 // bytes
	maximalMessage = 300
)

// A runtime is asked a few questions. A gRPC library would be a third of the program.
type runtime struct {
	client *http.Client

	mutex       sync.Mutex
	connections []net.Conn
}

// newRuntime speaks HTTP/2 by golang.org/x/net, as client-go does: the program is built without the copy in net/http
// (packaging/compile.sh).
func newRuntime(endpoint string) *runtime {
	socket := forecast.Socket(endpoint)
	r := &runtime{}
	r.client = &http.Client{Transport: &http2.Transport{
		AllowHTTP: true,
		DialTLSContext: func(ctx context.Context, _, _ string, _ *tls.Config) (net.Conn, error) {
			var dialer net.Dialer
			connection, err := dialer.DialContext(ctx, "unix", socket)
			if err == nil {
				r.mutex.Lock()
				defer r.mutex.Unlock()
				r.connections = append(r.connections, connection)
			}
			return connection, err
		},
	}}
	return r
}

// close closes connections that wait for an answer, too: a runtime that hangs would keep them open.
func (r *runtime) close() {
	r.client.CloseIdleConnections()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, connection := range r.connections {
		_ = connection.Close()
	}
}

// RuntimeAnswers asks the container runtime for its version, and says why it did not answer. An error of the runtime itself is an answer.
func RuntimeAnswers(ctx context.Context, endpoint string) error {
	runtime := newRuntime(endpoint)
	defer runtime.close()
	_, err := runtime.ask(ctx, version, nil, maximalAnswer)
	if status := (statusError{}); errors.As(err, &status) && status.code != "" {
		return nil
	}
	return err
}

// RuntimeRefuses returns why no process accepts connections at the container runtime's socket. It returns nil if one
// does, whether it answers or not.
func RuntimeRefuses(ctx context.Context, endpoint string) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "unix", forecast.Socket(endpoint))
	if err != nil {
		return err
	}
	return connection.Close()
}

// imageFolder is where the images are.
func (r *runtime) imageFolder(ctx context.Context) (string, error) {
	answer, err := r.ask(ctx, imageFsInfo, nil, maximalAnswer)
	if isSilent(err) {
		return "", fmt.Errorf("%w: %w", ErrSilent, err)
	}
	if err != nil {
		return "", err
	}
	// The first of image_filesystems (1), its fs_id (2), and its mountpoint (1).
	folder := field(field(field(answer, 1), 2), 1)
	if len(folder) == 0 {
		return "", errors.New("the container runtime does not tell where its images are")
	}
	return string(folder), nil
}

// cgroupDriver is the runtime's own answer; "" where it gives none.
func (r *runtime) cgroupDriver(ctx context.Context) (string, error) {
	answer, err := r.ask(ctx, runtimeConfig, nil, maximalAnswer)
	if knowsNot(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	linux, told := find(answer, 1)
	if !told {
		return "", nil
	}
	if driver, _ := binary.Uvarint(field(linux, 1)); driver == 1 {
		return "cgroupfs", nil
	}
	return "systemd", nil // the default value, which is not sent
}

// A statusError is a gRPC answer that is none.
type statusError struct{ method, code, message string }

func (e statusError) Error() string {
	return fmt.Sprintf("the container runtime answers %s with status %s: %s", e.method, e.code, e.message)
}

// knowsNot reports whether the error is that the runtime does not know the method.
func knowsNot(err error) bool {
	var status statusError
	return errors.As(err, &status) && status.code == unimplemented
}

// isSilent tells an answer that did not come, or that is none yet, from one that says something.
func isSilent(err error) bool {
	var status statusError
	if errors.As(err, &status) {
		return status.code == deadlineExceeded || status.code == unavailable
	}
	return err != nil
}

// ask makes a gRPC call with this question. The answer has at most so many bytes.
func (r *runtime) ask(ctx context.Context, method string, question []byte, most int) ([]byte, error) {
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(question))), question...)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+method, bytes.NewReader(frame))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := r.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the container runtime: %w", err)
	}
	defer response.Body.Close()
	body, err := bounded.Read(response.Body, most)
	if err != nil {
		return nil, fmt.Errorf("asking the container runtime: %w", err)
	}
	status, message := response.Trailer.Get("Grpc-Status"), response.Trailer.Get("Grpc-Message")
	if status == "" { // an answer without a body has them in its header
		status, message = response.Header.Get("Grpc-Status"), response.Header.Get("Grpc-Message")
	}
	if status != "0" {
		return nil, statusError{method, status, bounded.Text(bounded.Line(message), maximalMessage)}
	}
	if len(body) < 5 || body[0] != 0 || uint64(binary.BigEndian.Uint32(body[1:])) != uint64(len(body)-5) {
		return nil, fmt.Errorf("the container runtime's answer to %s cannot be read", method)
	}
	return body[5:], nil
}

// field is the value of the first field of that number in a protobuf message: the bytes of a message or string, or a varint's.
func field(message []byte, number uint64) []byte {
	value, _ := find(message, number)
	return value
}

func find(message []byte, number uint64) (value []byte, found bool) {
	for len(message) > 0 {
		at, value, rest, err := nextField(message)
		if err != nil {
			return nil, false
		}
		if at == number {
			return value, true
		}
		message = rest
	}
	return nil, false
}

var errBroken = errors.New("a protobuf message is broken")

// nextField takes the first field off a protobuf message that is not empty.
func nextField(message []byte) (number uint64, value, rest []byte, err error) {
	key, n := binary.Uvarint(message)
	if n <= 0 {
		return 0, nil, nil, errBroken
	}
	message = message[n:]
	length := 0
	switch key & 7 {
	case 0:
		_, length = binary.Uvarint(message)
	case 1:
		length = 8
	case 5:
		length = 4
	case 2:
		size, n := binary.Uvarint(message)
		if n <= 0 || size > uint64(len(message)-n) {
			return 0, nil, nil, errBroken
		}
		message, length = message[n:], int(size)
	}
	if length <= 0 && key&7 != 2 || length > len(message) {
		return 0, nil, nil, errBroken
	}
	return key >> 3, message[:length], message[length:], nil
}
