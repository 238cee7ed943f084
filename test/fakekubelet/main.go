//go:build linux

// The fake kubelet behaves towards its parent as a kubelet does, without a
// container runtime or an API server, and misbehaves when asked to.
//
// It takes a kubelet's flags, decodes the file behind the last --config, stops at
// the lock-file check as a pre-flight expects, answers /healthz, reports READY=1
// and exits with 0 on SIGTERM. What it is to do wrong it reads from the mapping
// `fake` of that file, a field unknown to a real kubelet, or, if the file has
// none, from the environment variable FAKE_KUBELET (the same YAML); see behaviour.
// With --root-dir it has a CPU and a memory manager; see restoreStates. A pre-flight with --v=5
// tells its configuration; see tell.
// With --lock-file it waits there, deaf to SIGTERM, before it starts.
// Every event becomes a line of JSON in the file that FAKE_KUBELET_RECORD names.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"
)

// behaviour is what the fake does. Modes:
//
//	ok            healthy at once, runs until SIGTERM (the default)
//	slow          healthy only after `after`
//	crash         says `words` and exits with `code` (1) `after` its start; healthy
//	              meanwhile if `healthyFirst`; only the first `crashTimes` starts
//	              if that is set, counted in the file `counter`
//	hang          never healthy
//	ignoreTerm    healthy, ignores SIGTERM
//	refuse        finds its configuration invalid (`words`), as pre-flight and as start
//	panic         the same, by a panic
//	swallow       a pre-flight starts for real, as behind a wrapper that swallows flags
//	exitZero      exits with 0 at once, as pre-flight and as start
//	hangPreflight a pre-flight never ends; otherwise ok
//	refuseLater   accepted by a pre-flight, but a start is refused (`words`)
//	slowToLock    comes to its lock only `after`; otherwise ok
type behaviour struct {
	Mode         string   `json:"mode"`
	As           string   `json:"as"` // only where the program has this name, as another version would; else ok
	After        duration `json:"after"`
	StopAfter    duration `json:"stopAfter"` // from SIGTERM to the exit
	Code         *int     `json:"code"`
	HealthyFirst bool     `json:"healthyFirst"`
	Words        string   `json:"words"`
	Lines        int      `json:"lines"` // said before `words`, of which the first is an error, too
	Counter      string   `json:"counter"`
	CrashTimes   int      `json:"crashTimes"`
	Pings        int      `json:"pings"` // WATCHDOG=1 so often and then no more, only the first crashTimes starts; 0 = for ever
}

type duration struct{ time.Duration }

func (d *duration) UnmarshalText(text []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(text))
	return err
}

// configuration has the fields of a KubeletConfiguration that the fake obeys.
type configuration struct {
	Kind                string     `json:"kind"`
	APIVersion          string     `json:"apiVersion"`
	HealthzPort         *int       `json:"healthzPort"`
	HealthzBindAddress  string     `json:"healthzBindAddress"`
	MaxPods             int        `json:"maxPods"` // a wrong type fails to decode
	CPUManagerPolicy    string     `json:"cpuManagerPolicy"`
	MemoryManagerPolicy string     `json:"memoryManagerPolicy"`
	Fake                *behaviour `json:"fake"`

	SystemReserved         map[string]string `json:"systemReserved"`
	SystemReservedCgroup   string            `json:"systemReservedCgroup"`
	EnforceNodeAllocatable []string          `json:"enforceNodeAllocatable"`
}

func main() {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM, syscall.SIGINT)
	flags := parseFlags(os.Args[1:])
	if flags["version"] == "true" {
		fmt.Println("Kubernetes v0.0.0-fake")
		return
	}
	preflight := flags["exit-on-lock-contention"] == "true" && flags["lock-file"] == ""
	event := "preflight"
	switch {
	case !preflight && flags["lock-file"] != "":
		event = "wait"
	case !preflight:
		event = claim(0)
	}
	content, readErr := os.ReadFile(flags["config"])
	record := newRecorder(flags["config"], content)
	record(event, 0)
	end := "exit"
	if preflight {
		end = "answer" // it was no kubelet's end
	}
	exit := func(code int) {
		record(end, code)
		os.Exit(code)
	}
	fail := func(format string, words ...any) {
		logLine('E', "%q err=%q", "command failed", fmt.Sprintf(format, words...))
		exit(1)
	}

	config, err := load(flags["config"], content, readErr)
	if err != nil {
		fail("failed to load kubelet config file, path: %s, error: %v", flags["config"], err)
	}
	does, err := config.behaviour()
	if err != nil {
		fail("failed to read FAKE_KUBELET: %v", err)
	}
	switch does.Mode {
	case "refuse":
		fail("failed to validate kubelet configuration, error: %s, path: &TypeMeta{Kind:,APIVersion:,}", does.Words)
	case "panic":
		fmt.Fprintf(os.Stderr, "panic: %s\n\ngoroutine 1 [running]:\nmain.main()\n\tfake.go:1 +0x1\n", does.Words)
		exit(2)
	case "exitZero":
		exit(0)
	}
	switch {
	case !preflight && does.Mode == "refuseLater":
		fail("failed to validate kubelet configuration, error: %s, path: &TypeMeta{Kind:,APIVersion:,}", does.Words)
	case !preflight && does.Mode == "slowToLock":
		time.Sleep(does.After.Duration)
	}
	if preflight {
		tell(flags, content)
		switch does.Mode {
		case "hangPreflight":
			select {}
		case "swallow":
			logLine('I', "%q", "Acquiring file lock")
			select {} // a real one would run now, whatever signal comes
		}
		fail("failed to run Kubelet: cannot exit on lock file contention: no lock file specified")
	}
	if flags["lock-file"] != "" {
		if err := acquire(flags["lock-file"]); err != nil {
			fail("failed to run Kubelet: unable to acquire file lock on %q: %v", flags["lock-file"], err)
		}
		record(claim(endingTime), 0)
	}
	exit(run(does, flags, config, terminated, record))
}

// run is the life of a kubelet that accepted its configuration. It gives the
// exit code.
func run(does behaviour, flags map[string]string, config configuration, terminated <-chan os.Signal, record func(string, int)) int {
	logLine('I', "%q", "Starting kubelet")
	crashes := does.Mode == "crash" && does.crashesThisTime()
	var healthyAt, managersAt, crashAt, pingAt <-chan time.Time
	pings, pingEvery := 0, watchdog()/2
	switch {
	case crashes:
		crashAt = time.After(does.After.Duration)
		if does.HealthyFirst {
			healthyAt = time.After(0)
		}
	case does.Mode == "slow":
		healthyAt = time.After(does.After.Duration)
	case does.Mode != "hang":
		healthyAt = time.After(0)
	}
	for {
		select {
		case <-healthyAt:
			serveHealthz(flags, config)
			notify("READY=1")
			managersAt = time.After(managersAfter)
			if pingEvery > 0 {
				pingAt = time.After(0)
			}
		case <-pingAt:
			if pings++; does.Pings > 0 && pings > does.Pings && does.crashesThisTime() {
				continue
			}
			notify("WATCHDOG=1")
			pingAt = time.After(pingEvery)
		case <-managersAt:
			managersAt = nil
			if !startManagers(flags, config) {
				return 1
			}
		case <-crashAt:
			if managersAt != nil && !startManagers(flags, config) { // a busy machine let it live for no longer
				return 1
			}
			for line := range does.Lines {
				logLine("EI"[min(line, 1)], "line %d", line)
			}
			logLine('E', "%q err=%q", "command failed", does.Words)
			if does.Code == nil {
				return 1
			}
			return *does.Code
		case <-terminated:
			record("term", 0)
			if does.Mode == "ignoreTerm" {
				continue
			}
			time.Sleep(does.StopAfter.Duration)
			return 0
		}
	}
}

// parseFlags reads `--a=b`, `--a b` and `--a`; the last one wins.
func parseFlags(argv []string) map[string]string {
	flags := map[string]string{}
	for i, word := range argv {
		name, value, hasValue := strings.Cut(word, "=")
		if !strings.HasPrefix(name, "--") {
			continue
		}
		if !hasValue {
			value = "true"
			if i+1 < len(argv) && !strings.HasPrefix(argv[i+1], "--") {
				value = argv[i+1]
			}
		}
		flags[strings.ReplaceAll(name[2:], "_", "-")] = value
	}
	return flags
}

func load(path string, content []byte, readErr error) (config configuration, err error) {
	if path == "" {
		return config, nil
	}
	if readErr != nil {
		return config, fmt.Errorf("failed to read kubelet config file %q, error: %w", path, readErr)
	}
	if len(content) == 0 {
		return config, fmt.Errorf("kubelet config file %q was empty", path)
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		return config, fmt.Errorf("failed to decode: %w", err)
	}
	if config.Kind != "KubeletConfiguration" || config.APIVersion != "kubelet.config.k8s.io/v1beta1" {
		return config, fmt.Errorf("failed to decode: Object 'Kind' is missing in '%s'", content)
	}
	return config, nil
}

func (c configuration) behaviour() (does behaviour, err error) {
	if c.Fake != nil {
		does = *c.Fake
	} else {
		err = yaml.Unmarshal([]byte(os.Getenv("FAKE_KUBELET")), &does)
	}
	if does.As != "" && does.As != filepath.Base(os.Args[0]) {
		does = behaviour{}
	}
	return does, err
}

// crashesThisTime counts the start.
func (b behaviour) crashesThisTime() bool {
	if b.Counter == "" || b.CrashTimes == 0 {
		return true
	}
	text, _ := os.ReadFile(b.Counter)
	starts, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if err := os.WriteFile(b.Counter, []byte(strconv.Itoa(starts+1)), 0o600); err != nil {
		logLine('E', "%q err=%q", "counting starts", err.Error())
	}
	return starts < b.CrashTimes
}

// serveHealthz answers /healthz where flags, else the configuration, say. Like
// a kubelet it goes on where its port is taken, and asks for it again.
func serveHealthz(flags map[string]string, config configuration) {
	address, port := config.HealthzBindAddress, "10248"
	if address == "" {
		address = "127.0.0.1"
	}
	if config.HealthzPort != nil {
		port = strconv.Itoa(*config.HealthzPort)
	}
	if flag := flags["healthz-bind-address"]; flag != "" {
		address = flag
	}
	if flag := flags["healthz-port"]; flag != "" {
		port = flag
	}
	if port == "0" {
		return
	}
	listener, err := listenForHealthz(net.JoinHostPort(address, port))
	go func() {
		for err != nil {
			time.Sleep(healthzRetry)
			listener, err = listenForHealthz(net.JoinHostPort(address, port))
		}
		handler := http.NewServeMux()
		handler.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
		_ = http.Serve(listener, handler)
	}()
}

// healthzRetry is how long the real kubelet waits, too, before it asks for its port again (cmd/kubelet/app/server.go). In tests that
// run side by side a port that was free may be another process's for a moment.
const healthzRetry = 5 * time.Second

func listenForHealthz(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		logLine('E', "%q err=%q", "Failed to start healthz server", err.Error())
	}
	return listener, err
}

// watchdog is the interval that its parent gave it.
func watchdog() time.Duration {
	microseconds, _ := strconv.Atoi(os.Getenv("WATCHDOG_USEC"))
	return time.Duration(microseconds) * time.Microsecond
}

func notify(message string) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	connection, err := net.Dial("unixgram", socket)
	if err == nil {
		_, err = io.WriteString(connection, message)
		connection.Close()
	}
	if err != nil {
		logLine('E', "%q err=%q", "Failed to notify", err.Error())
	}
}

// logLine prints as klog does.
func logLine(severity byte, format string, words ...any) {
	header := fmt.Sprintf("%c%s %7d fake.go:1] ", severity, time.Now().Format("0102 15:04:05.000000"), os.Getpid())
	fmt.Fprintf(os.Stderr, header+format+"\n", words...)
}
