package supervisor

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/login1"
	"github.com/godbus/dbus/v5"
	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

const (
	hostSignal  = "PrepareForShutdown" // of org.freedesktop.login1.Manager: true when a shutdown begins, false when it is called off
	hostRecheck = time.Minute          // logind may come later, or be restarted
)

// watchHost tells the loop of the host's shutdown until ctx ends. A host without logind is never known to shut down; the service
// manager's SIGTERM comes all the same.
func (l *loop) watchHost(ctx context.Context) {
	for said := false; ctx.Err() == nil; {
		if err := l.hearHost(ctx); err != nil && !said {
			said = true
			l.Logger.Info("the host's shutdown is not announced here", zap.Error(err))
		}
		select {
		case <-time.After(hostRecheck):
		case <-ctx.Done():
		}
	}
}

// hearHost listens to logind until the connection or ctx ends.
func (l *loop) hearHost(ctx context.Context) error {
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
				l.send(ctx, decide.HostStopping{CalledOff: !stopping})
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
