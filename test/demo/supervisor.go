//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// supervisorFlags make the trial short, and edits immediate: for one node there is nothing to spread.
var supervisorFlags = []string{"--trial-period=5s", "--edit-spread=0s", "--stop-timeout=10s"}

const stopPatience = 20 * time.Second

// A supervisor is kubelet-supervisor, running.
type supervisor struct {
	process *os.Process
	program string // the kubelet's
	log     string
	done    chan struct{} // closed when it has been waited for; err is set then
	err     error
}

// startSupervisor starts kubelet-supervisor with the real kubelet, in a process group of its own so that a terminal's Ctrl-C
// does not reach it: the demo stops it.
func startSupervisor(p *printer, c *cluster.Cluster) (*supervisor, error) {
	program, err := beside("kubelet-supervisor")
	if err != nil {
		return nil, err
	}
	flags := append([]string{"run", "--state-dir=" + c.Folder + "/state", "--run-dir=" + c.Folder + "/run"}, supervisorFlags...)
	kubelet := c.KubeletArguments(fmt.Sprintf("--event-qps=%d", flagQPS))
	p.command(fmt.Sprintf("%s %s \\\n      -- %s", program, strings.Join(flags, " "), strings.Join(kubelet, " \\\n      ")))

	s := &supervisor{program: c.Kubelet(), log: filepath.Join(c.Folder, "log", "kubelet-supervisor.log"), done: make(chan struct{})}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := c.Command(program, slices.Concat(flags, []string{"--"}, kubelet)...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting kubelet-supervisor: %w", err)
	}
	s.process = command.Process
	go func() { // ends with the process, which stop waits for
		s.err = command.Wait()
		close(s.done)
	}()
	return s, nil
}

// stop asks the supervisor to stop, which stops the kubelet; the error tells when it did not end with exit code 0.
func (s *supervisor) stop() error {
	_ = s.process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(stopPatience):
		_ = s.process.Kill()
		<-s.done
	}
	if s.err != nil {
		return fmt.Errorf("expected: kubelet-supervisor ends with exit code 0 within %s of SIGTERM; seen: %w", stopPatience, s.err)
	}
	return nil
}

// kubelet gives the kubelet's pid.
func (s *supervisor) kubelet() (int, error) { return kubeletOf(s.process.Pid, s.program) }

// kubeletOf gives the pid of a supervisor's kubelet, from the process table: its only child but for a pre-flight, whose flags tell it.
func kubeletOf(supervisor int, program string) (int, error) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", supervisor))
	var kubelets []string
	for _, file := range files {
		children, _ := os.ReadFile(file) // a thread may have ended, and so may a child
		for _, pid := range strings.Fields(string(children)) {
			words, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			if strings.HasPrefix(string(words), program+"\x00") && !strings.Contains(string(words), "--exit-on-lock-contention") {
				kubelets = append(kubelets, pid)
			}
		}
	}
	if len(kubelets) != 1 {
		return 0, fmt.Errorf("expected: one kubelet as the child of kubelet-supervisor; seen: %d of them %v", len(kubelets), kubelets)
	}
	return strconv.Atoi(kubelets[0])
}
