package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"
	"go.uber.org/zap"
)

// What logind announces (org.freedesktop.login1(5)).
const (
	logind           = "org.freedesktop.login1"
	logindPath       = "/org/freedesktop/login1"
	logindManager    = logind + ".Manager"
	shutdownSignal   = "PrepareForShutdown" // true when a shutdown begins, false when it is cancelled
	shutdownProperty = "PreparingForShutdown"
	ownerSignal      = "NameOwnerChanged" // of the bus itself: logind came, or was restarted
	hostRecheck      = time.Minute        // logind may come later, or the bus be restarted
)

// WatchShutdown reports the host's shutdown, and its cancellation, until ctx ends. stopping is the last report. A
// signal is no more than a reason to ask logind, because any local user can send one (rule 27). It can be missed,
// while there is no connection or this program is replaced, so logind is asked too at each connection, when logind
// comes again, and at intervals. A host without logind is never known to shut down; the service manager's SIGTERM
// comes anyway.
func WatchShutdown(ctx context.Context, logger *zap.Logger, stopping bool, tell func(stopping bool)) {
	changed := func(now bool) {
		if now != stopping {
			stopping = now
			tell(now)
		}
	}
	for said := false; ctx.Err() == nil; {
		if err := hearHost(ctx, changed); err != nil && !said {
			said = true
			logger.Info("the host's shutdown is not announced here", zap.Error(err))
		}
		select {
		case <-time.After(hostRecheck):
		case <-ctx.Done():
		}
	}
}

// hearHost reports what logind says until the connection or ctx ends.
func hearHost(ctx context.Context, tell func(stopping bool)) error {
	connection, err := connectSystemBus(ctx)
	if err != nil {
		return fmt.Errorf("connecting to logind: %w", err)
	}
	defer func() { _ = connection.Close() }()
	signals := make(chan *dbus.Signal, 10)
	connection.Signal(signals)
	err = errors.Join(
		connection.AddMatchSignal(dbus.WithMatchSender(logind), dbus.WithMatchInterface(logindManager), dbus.WithMatchMember(shutdownSignal)),
		connection.AddMatchSignal(dbus.WithMatchSender("org.freedesktop.DBus"), dbus.WithMatchMember(ownerSignal), dbus.WithMatchArg(0, logind)))
	if err != nil {
		return fmt.Errorf("listening to logind: %w", err)
	}
	ask := func() {
		if now, err := preparingForShutdown(ctx, connection); err == nil {
			tell(now)
		}
	}
	ask()
	again := time.NewTicker(hostRecheck)
	defer again.Stop()
	for {
		select {
		case _, open := <-signals:
			if !open {
				return errors.New("listening to logind: the connection was closed")
			}
			ask() // from any sender: every local user can send a signal, and only logind answers for itself
		case <-again.C:
			ask()
		case <-ctx.Done():
			return nil
		}
	}
}

// connectSystemBus gives a connection of our own, which ends with ctx, and so does the wait for it: dbus.socket takes
// connections while the daemon is frozen, or cannot start. The uid is named as a number: no user has to be looked up.
func connectSystemBus(ctx context.Context) (*dbus.Conn, error) {
	connection, err := dbus.SystemBusPrivate(dbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err = connection.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err == nil {
		err = connection.Hello()
	}
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return connection, nil
}

// preparingForShutdown asks without starting a logind that is not there.
func preparingForShutdown(ctx context.Context, connection *dbus.Conn) (stopping bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	err = connection.Object(logind, logindPath).
		CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", dbus.FlagNoAutoStart, logindManager, shutdownProperty).Store(&stopping)
	return stopping, err
}
