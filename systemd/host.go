package systemd

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/login1"
	"github.com/godbus/dbus/v5"
	"go.uber.org/zap"
)

const (
	hostSignal  = "PrepareForShutdown" // of org.freedesktop.login1.Manager: true when a shutdown begins, false when it is called off
	hostRecheck = time.Minute          // logind may come later, or be restarted
)

// WatchShutdown tells of the host's shutdown, and that one was called off, until ctx ends. A host without logind is never known to shut down; the service
// manager's SIGTERM comes all the same.
func WatchShutdown(ctx context.Context, logger *zap.Logger, tell func(stopping bool)) {
	for said := false; ctx.Err() == nil; {
		if err := hearHost(ctx, tell); err != nil && !said {
			said = true
			logger.Info("the host's shutdown is not announced here", zap.Error(err))
		}
		select {
		case <-time.After(hostRecheck):
		case <-ctx.Done():
		}
	}
}

// hearHost listens to logind until the connection or ctx ends.
func hearHost(ctx context.Context, tell func(stopping bool)) error {
	connection, err := login1.New()
	if err != nil {
		return fmt.Errorf("connecting to logind: %w", err)
	}
	defer connection.Close()
	signals := connection.Subscribe(hostSignal)
	for {
		select {
		case signal, open := <-signals:
			if !open {
				return fmt.Errorf("listening to logind: the connection was closed")
			}
			if stopping, is := announced(signal); is {
				tell(stopping)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func announced(signal *dbus.Signal) (stopping, is bool) {
	if signal.Name != "org.freedesktop.login1.Manager."+hostSignal || len(signal.Body) != 1 {
		return false, false
	}
	stopping, is = signal.Body[0].(bool)
	return stopping, is
}
