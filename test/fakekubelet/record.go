//go:build linux

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// entry is one line of FAKE_KUBELET_RECORD.
type entry struct {
	Event       string            `json:"event"` // start, beside (started while another ran), preflight, wait (at a lock, perhaps for nobody), term or exit
	Code        int               `json:"code"`  // of an exit
	PID         int               `json:"pid"`
	PPID        int               `json:"ppid"`
	Argv        []string          `json:"argv"` // without the binary
	Cwd         string            `json:"cwd"`
	Environment map[string]string `json:"environment"` // those of recordedVariables that are set
	Config      string            `json:"config"`      // the last --config
	SHA256      string            `json:"sha256"`      // of its content, hex; "" without one
	OpenFiles   string            `json:"openFiles"`   // the inherited soft limit, as `ulimit -n` prints it
}

var recordedVariables = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "FAKE_KUBELET_MARKER"}

// newRecorder gives a function that appends an event, each with a single write:
// two fakes at once do not tear each other's lines.
func newRecorder(config string, content []byte) func(event string, code int) {
	path := os.Getenv("FAKE_KUBELET_RECORD")
	if path == "" {
		return func(string, int) {}
	}
	cwd, _ := os.Getwd()
	base := entry{PID: os.Getpid(), PPID: os.Getppid(), Argv: os.Args[1:], Cwd: cwd, Config: config,
		Environment: map[string]string{}, OpenFiles: inheritedOpenFiles()}
	if len(content) > 0 {
		sum := sha256.Sum256(content)
		base.SHA256 = hex.EncodeToString(sum[:])
	}
	for _, name := range recordedVariables {
		if value, set := os.LookupEnv(name); set {
			base.Environment[name] = value
		}
	}
	return func(event string, code int) {
		line := base
		line.Event, line.Code = event, code
		text, err := json.Marshal(line)
		if err != nil {
			panic(err)
		}
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		defer file.Close()
		if _, err := file.Write(append(text, '\n')); err != nil {
			panic(err)
		}
	}
}

// acquire waits for the lock file as a kubelet does (pkg/util/flock).
func acquire(path string) error {
	logLine('I', "%q path=%q", "Acquiring file lock", path)
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	for {
		if err := syscall.Flock(fd, syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// endingTime is how long one that is ending may still have the claim when its lock file is free already: both go with its open files, one
// after the other.
const endingTime = 200 * time.Millisecond

// claim gives the event of a start: "start", or "beside" while another fake with the same record runs, for longer than patience. The claim
// is held to the end.
func claim(patience time.Duration) string {
	path := os.Getenv("FAKE_KUBELET_RECORD")
	if path == "" {
		return "start"
	}
	file, err := syscall.Open(path+".running", syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		panic(err)
	}
	for began := time.Now(); syscall.Flock(file, syscall.LOCK_EX|syscall.LOCK_NB) != nil; time.Sleep(time.Millisecond) {
		if time.Since(began) >= patience {
			return "beside"
		}
	}
	return "start"
}

// inheritedOpenFiles asks a shell: a Go program raises its own soft limit before
// main, and hands the inherited one to its children.
func inheritedOpenFiles() string {
	limit, err := exec.Command("/bin/sh", "-c", "ulimit -S -n").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(limit))
}
