//go:build linux

package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/umask"
)

const (
	unixPrefix  = "unix://"
	listenAgain = 10 * time.Second
	// readTime and mostHead bound what a reader who never ends costs.
	readTime = 10 * time.Second
	mostHead = 8 << 10
	// socketMode is for agents in the socket's group.
	socketMode = 0o660
)

// CheckAddress returns an error for an address that Serve would not listen to: anything except unix:///PATH and a loopback address with a
// port.
func CheckAddress(address string) error {
	_, _, err := parse(address)
	return err
}

func parse(address string) (network, where string, err error) {
	if path, is := strings.CutPrefix(address, unixPrefix); is {
		if !filepath.IsAbs(path) || strings.HasSuffix(path, "/") || len(path) > 100 {
			return "", "", fmt.Errorf("%q is not the absolute path of a socket, of 100 bytes at most; give one such as "+
				"unix:///run/kubelet-supervisor/metrics.sock", address)
		}
		return "unix", path, nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsLoopback() || at.Port() == 0 {
		return "", "", fmt.Errorf("%q is neither unix:///PATH nor an address of loopback with a port; give one such as 127.0.0.1:10247", address)
	}
	return "tcp", address, nil
}

// Serve answers GET /metrics there until ctx ends. An error of listening is logged once, and it tries again.
func (m *Metrics) Serve(ctx context.Context, address string, logger *zap.Logger) {
	said := ""
	for {
		err := m.serve(ctx, address)
		if ctx.Err() != nil {
			return
		}
		if words := err.Error(); words != said {
			said = words
			logger.Warn("the metrics cannot be served; the kubelet runs on", zap.String("error", words))
		}
		if !wait(ctx, listenAgain, nil) {
			return
		}
	}
}

func (m *Metrics) serve(ctx context.Context, address string) error {
	listener, err := listen(ctx, address)
	if err != nil {
		return fmt.Errorf("listening at %s: %w", address, err)
	}
	server := &http.Server{Handler: http.HandlerFunc(m.answer), ReadTimeout: readTime, WriteTimeout: readTime, IdleTimeout: time.Minute,
		MaxHeaderBytes: mostHead}
	ended := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer ended()
	return server.Serve(listener)
}

// listen replaces a socket that no process listens to, and nothing else.
func listen(ctx context.Context, address string) (net.Listener, error) {
	network, where, err := parse(address)
	if err != nil {
		return nil, err
	}
	if network == "unix" {
		info, err := os.Lstat(where)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return nil, err
		case info.Mode()&os.ModeSocket == 0:
			return nil, fmt.Errorf("%s is there, and no socket; remove it", where)
		default:
			if c, err := new(net.Dialer).DialContext(ctx, network, where); err == nil {
				return nil, errors.Join(fmt.Errorf("another program listens at %s", where), c.Close())
			}
			if err := os.Remove(where); err != nil {
				return nil, err
			}
		}
	}
	if network != "unix" {
		return new(net.ListenConfig).Listen(ctx, network, where)
	}
	var listener net.Listener
	err = umask.With(0o777&^socketMode, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(ctx, network, where)
		return err
	})
	return listener, err
}

func (m *Metrics) answer(to http.ResponseWriter, request *http.Request) {
	switch {
	case request.URL.Path != "/metrics":
		http.NotFound(to, request)
	case request.Method != http.MethodGet && request.Method != http.MethodHead:
		to.Header().Set("Allow", "GET, HEAD")
		http.Error(to, "only GET is answered", http.StatusMethodNotAllowed)
	default:
		to.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = to.Write(m.Text())
	}
}
