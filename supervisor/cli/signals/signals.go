//go:build linux

// Package signals listens to the signals of `run` from the first moment on where this program takes the place of another (a reload).
//
// Until a Go program listens, SIGTERM, SIGHUP and SIGINT end it, and nothing can be done about it: the runtime unblocks them. This
// package depends on next to nothing and is initialised before most others, so that this moment is short. The program before ignores
// what it can do without until then (Ignore), so that only a SIGTERM within the first millisecond or two still ends the process.
package signals

import (
	"os"
	"os/signal"
	"syscall"
)

// HandoverVariable is in the environment of a program that takes the place of another. It is package supervisor's, which would bring too
// much with it here.
const HandoverVariable = "KUBELET_SUPERVISOR_HANDOVER"

// channel has room for one of each, and more.
var channel = make(chan os.Signal, 16)

func init() {
	if _, takesOver := os.LookupEnv(HandoverVariable); takesOver {
		Listen()
	}
}

// Listen returns the channel of SIGTERM, SIGINT, SIGHUP and SIGUSR1, those before included where this program takes over.
func Listen() <-chan os.Signal {
	signal.Notify(channel, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1)
	return channel
}

// Stop ends listening: the signals do again what they do to any program.
func Stop() { signal.Stop(channel) }

// OutlivePipes makes a write to an output whose reader is gone an error, and not the end of this program: the log is not worth a kubelet.
// The signal is caught and not ignored, because children and an executed program inherit what is ignored: the kubelet has SIGPIPE as it
// always had. (Under systemd alone it finds it ignored, by IgnoreSIGPIPE=. Like every Go program it then sets it for itself, so that makes
// no difference; a script before it would see one.)
func OutlivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// Ignore has SIGHUP, SIGINT and SIGUSR1 ignored, also by a program that is executed now, until that listens to them. A reload that is
// asked for again is already under way; `retry` asks again. undo listens to them again.
func Ignore() (undo func()) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGUSR1)
	return func() { Listen() }
}
