//go:build systemd

package systemd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// machine is a booted one; see machine.sh.
type machine struct {
	*testing.T
	root, upper string

	// Where they are, in /usr/bin unless the test says otherwise.
	kubelet, supervisor string

	pid     string // of its systemd, outside
	process *exec.Cmd
	power   io.Closer // closing it switches the machine off
}

func boot(t *testing.T, root string) *machine {
	t.Helper()
	upper, err := os.MkdirTemp("", "machine-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(upper) })
	m := &machine{T: t, root: root, upper: upper, kubelet: "/usr/bin/kubelet", supervisor: "/usr/bin/kubelet-supervisor"}
	t.Cleanup(m.off)
	m.on()
	return m
}

// name is that of the machine's cgroups.
func (m *machine) name() string { return filepath.Base(m.upper) }

func (m *machine) on() {
	m.Helper()
	m.process = exec.Command("./machine.sh", m.root, m.upper, shared)
	var stderr bytes.Buffer
	m.process.Stderr = &stderr
	power, err := m.process.StdinPipe()
	if err != nil {
		m.Fatal(err)
	}
	m.power = power
	said, err := m.process.StdoutPipe()
	if err != nil {
		m.Fatal(err)
	}
	begin := time.Now()
	if err := m.process.Start(); err != nil {
		m.Fatal(err)
	}
	line, _ := bufio.NewReader(said).ReadString('\n')
	pid, found := strings.CutPrefix(strings.TrimSpace(line), "PID ")
	if !found {
		m.off()
		m.Fatalf("the machine does not boot: %s", stderr.String())
	}
	m.pid = pid
	var state string
	await(m.T, "systemd answers", func() error {
		if state, _ = m.try("systemctl is-system-running --wait"); strings.Contains(state, "Failed to connect to bus") {
			return errors.New(strings.TrimSpace(state))
		}
		return nil
	})
	m.Logf("%s after %.2f s: %s", m.must("systemctl --version | head -1"), time.Since(begin).Seconds(), strings.TrimSpace(state))
}

// off switches the machine off, and tells what happened on it if the test failed.
func (m *machine) off() {
	if m.process == nil {
		return
	}
	if m.Failed() && m.pid != "" {
		words, _ := m.try("systemctl --failed --no-legend; systemctl status 'kubelet*' 2>&1; journalctl --no-hostname -o short-precise | tail -60")
		m.Log(words)
	}
	_ = m.power.Close()
	_ = m.process.Wait()
	m.process, m.pid = nil, ""
}

// reboot as a person does it: by switching it off properly.
func (m *machine) reboot() {
	m.Helper()
	m.off()
	m.on()
}

// try runs a line of shell inside and gives what it said, on both outputs.
func (m *machine) try(line string, more ...any) (string, error) {
	line = fmt.Sprintf(line, more...)
	command := exec.Command("nsenter", "--target", m.pid, "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--root", "--wd",
		"env", "-i", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0", "DEBIAN_FRONTEND=noninteractive",
		"timeout", fmt.Sprint(patience.Seconds()), "/bin/bash", "-c", line)
	words, err := command.CombinedOutput()
	return strings.TrimSpace(string(words)), err
}

// must runs what must not fail.
func (m *machine) must(line string, more ...any) string {
	m.Helper()
	words, err := m.try(line, more...)
	if err != nil {
		m.Fatalf("%s: %v\n%s", fmt.Sprintf(line, more...), err, words)
	}
	return words
}

// outside is where a file of the machine is to be found from here.
func (m *machine) outside(path string) string { return filepath.Join("/proc", m.pid, "root", path) }

func (m *machine) write(path, content string) {
	m.Helper()
	file := m.outside(path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		m.Fatal(err)
	}
}

func (m *machine) read(path string) string {
	m.Helper()
	content, err := os.ReadFile(m.outside(path))
	if err != nil {
		m.Fatal(err)
	}
	return string(content)
}

func (m *machine) has(path string) bool {
	_, err := os.Lstat(m.outside(path))
	return err == nil
}

// property is what systemd says of a unit.
func (m *machine) property(unit, name string) string {
	m.Helper()
	return m.must("systemctl show --value --property=%s %s", name, unit)
}

// program is the executable of a process inside.
func (m *machine) program(pid string) string {
	path, err := os.Readlink(m.outside(filepath.Join("/proc", pid, "exe")))
	if err != nil {
		return ""
	}
	return path
}

// pids of the processes inside that run this executable, also where it has been replaced meanwhile; in the order of their start.
func (m *machine) pids(executable string) (pids []string) {
	m.Helper()
	entries, err := os.ReadDir(m.outside("/proc"))
	if err != nil {
		m.Fatal(err)
	}
	for _, entry := range entries {
		if strings.TrimSuffix(m.program(entry.Name()), " (deleted)") == executable {
			pids = append(pids, entry.Name())
		}
	}
	slices.SortFunc(pids, func(a, b string) int { x, _ := strconv.Atoi(a); y, _ := strconv.Atoi(b); return x - y })
	return pids
}
