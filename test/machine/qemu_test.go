//go:build machine

package machine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/machine/disk"
)

// machine is a virtual one: its disk stays when it is switched off.
type machine struct {
	*testing.T
	kind    string // node or bare, as init knows them
	disk    *disk.Disk
	command func(name string, arguments ...string) *exec.Cmd // runs QEMU where the machine's network is to be
	more    []string                                         // of QEMU's arguments
	words   string                                           // more of the kernel's command line
	folder  string                                           // sockets, console, snapshot
	boots   map[string]bool                                  // every boot id there was

	// While it is on.
	process *exec.Cmd
	ended   chan struct{} // closed when QEMU has been waited for
	monitor *monitor
	agent   *client
	since   time.Time
}

// machines that run, for an interrupted test to kill.
type machines struct {
	mutex sync.Mutex
	set   map[*exec.Cmd]bool
}

var running = machines{set: map[*exec.Cmd]bool{}}

func (r *machines) add(process *exec.Cmd) { r.mutex.Lock(); r.set[process] = true; r.mutex.Unlock() }
func (r *machines) remove(process *exec.Cmd) {
	r.mutex.Lock()
	delete(r.set, process)
	r.mutex.Unlock()
}

func (r *machines) killAll() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for process := range r.set {
		_ = process.Process.Kill()
	}
}

// newMachine gives one that is off.
func newMachine(t *testing.T, kind string, content *disk.Disk, command func(string, ...string) *exec.Cmd, more ...string) *machine {
	t.Helper()
	m := &machine{T: t, kind: kind, disk: content, command: command, more: more, folder: t.TempDir(), boots: map[string]bool{}}
	t.Cleanup(m.off)
	return m
}

// on switches the machine on and waits for its agent.
func (m *machine) on() {
	m.Helper()
	m.start()
	m.booted("")
}

// start switches the machine on.
func (m *machine) start() { m.Helper(); m.launch(m.arguments("")) }

// launch starts QEMU.
func (m *machine) launch(arguments []string) {
	m.Helper()
	listeners := map[string]net.Listener{}
	for _, name := range []string{"disk", "monitor", "agent"} {
		path := filepath.Join(m.folder, name)
		_ = os.Remove(path)
		listener, err := net.Listen("unix", path)
		if err != nil {
			m.Fatal(err)
		}
		listeners[name] = listener
	}
	content := m.disk
	served := make(chan error, 1)
	go func() { served <- content.Serve(listeners["disk"]) }()

	var said bytes.Buffer
	m.process = m.command("qemu-system-x86_64", append(arguments, m.more...)...)
	m.process.Stdout, m.process.Stderr = &said, &said
	m.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := m.process.Start(); err != nil {
		m.Fatal(err)
	}
	m.since = time.Now()
	running.add(m.process)
	ended, process := make(chan struct{}), m.process
	m.ended = ended
	go func() { // ends with QEMU, which off waits for
		_ = process.Wait()
		running.remove(process)
		for _, listener := range listeners {
			_ = listener.Close()
		}
		if err := <-served; err != nil {
			m.Errorf("the disk: %v", err)
		}
		close(ended)
	}()

	connect := func(name string) net.Conn {
		connection, err := listeners[name].Accept()
		if err != nil {
			<-ended
			m.process = nil
			m.Fatalf("QEMU does not start: %s", said.String())
		}
		return connection
	}
	m.agent = newClient(connect("agent"))
	var err error
	if m.monitor, err = newMonitor(connect("monitor")); err != nil {
		m.Fatal(err)
	}
}

// systemd is told to leave out what loads the drivers of hardware that nothing here needs, for as long as a kubelet takes to start.
const systemd = "systemd.show_status=0 systemd.mask=systemd-udev-trigger.service systemd.mask=systemd-update-utmp-runlevel.service "

// arguments are QEMU's; more is the end of the kernel's command line.
func (m *machine) arguments(more string) []string {
	socket := func(name string) string { return filepath.Join(m.folder, name) }
	return []string{
		// The plainest processor is the one that is emulated fastest.
		"-machine", "q35,hpet=off", "-accel", "tcg,thread=multi", "-cpu", "qemu64", "-smp", "2", "-m", "1536",
		"-nodefaults", "-no-user-config", "-display", "none", "-rtc", "base=utc,clock=host",
		"-kernel", filepath.Join(kernel, "vmlinuz"), "-initrd", filepath.Join(shared, "initrd"),
		"-append", "console=ttyS0 quiet panic=-1 no_timer_check net.ifnames=0 mitigations=off root=/dev/vda rw " + systemd + "machine=" + m.kind + m.words + more,
		"-chardev", "file,id=console,append=on,path=" + socket("console"), "-serial", "chardev:console",
		"-chardev", "socket,id=agent,path=" + socket("agent"), "-chardev", "socket,id=monitor,path=" + socket("monitor"),
		"-mon", "chardev=monitor,mode=control",
		"-device", "virtio-serial-pci", "-device", "virtserialport,chardev=agent,name=agent", "-device", "virtio-rng-pci",
		"-blockdev", "driver=nbd,node-name=disk,server.type=unix,server.path=" + socket("disk"), "-device", "virtio-blk-pci,drive=disk",
		"-device", "virtio-net-pci,netdev=net,romfile=",
	}
}

// booted waits for the agent of another boot than the one before.
func (m *machine) booted(before string) {
	m.Helper()
	begin := time.Now()
	for m.agent.bootID() == before {
		select {
		case <-m.ended:
			m.Fatalf("the machine is off; its console: %s", m.console())
		case <-time.After(pollInterval / 4):
		}
		if time.Since(begin) > patience {
			m.Fatalf("no boot within %s; the console: %s", patience, m.console())
		}
	}
	boot := m.agent.bootID()
	if m.boots[boot] {
		m.Fatalf("boot %s has been there before", boot)
	}
	m.boots[boot] = true
	m.Logf("boot %.8s: after %.1f s", boot, time.Since(begin).Seconds())
}

// console is the end of what the kernel and systemd said there.
func (m *machine) console() string {
	content, _ := os.ReadFile(filepath.Join(m.folder, "console"))
	return string(content[max(0, len(content)-4000):])
}

// reset is the button of that name: nobody is asked, nothing is written.
func (m *machine) reset() {
	m.Helper()
	before := m.agent.bootID()
	if err := m.monitor.ask("system_reset"); err != nil {
		m.Fatal(err)
	}
	m.booted(before)
}

// reboot as a person does it.
func (m *machine) reboot() {
	m.Helper()
	before := m.agent.bootID()
	_, _ = m.try("systemctl reboot") // may not come to answer
	m.booted(before)
}

// cut is a loss of power, in which the disk forgets that share of what was not flushed.
func (m *machine) cut(chance *rand.Rand, share float64) {
	m.Helper()
	m.kill()
	m.disk.Cut(chance, share)
}

// poweroff switches the machine off in good order.
func (m *machine) poweroff() {
	m.Helper()
	_, _ = m.try("systemctl poweroff")
	select {
	case <-m.ended:
		m.process = nil
	case <-time.After(patience):
		m.Fatalf("it does not switch itself off; the console: %s", m.console())
	}
}

func (m *machine) kill() {
	if m.process == nil {
		return
	}
	_ = m.process.Process.Kill()
	<-m.ended
	m.process = nil
}

// off ends the machine, and tells what happened on it if the test failed.
func (m *machine) off() {
	if m.process != nil && m.Failed() {
		words, _ := m.agent.run("date; cat /proc/uptime; kubelet-supervisor status; systemctl --failed --no-legend; "+
			"journalctl --no-hostname -o short-precise -t kubelet-supervisor -t systemd -t kernel | tail -60; journalctl --no-hostname -t kubelet | tail -20", "")
		m.Logf("%s\nthe console: %s", words, m.console())
	}
	m.kill()
}

// try runs a line of shell inside.
func (m *machine) try(line string, more ...any) (string, error) {
	return m.agent.run(fmt.Sprintf(line, more...), "")
}

// must runs what must not fail.
func (m *machine) must(line string, more ...any) string {
	m.Helper()
	words, err := m.try(line, more...)
	if err != nil {
		m.Fatalf("%s: %v", fmt.Sprintf(line, more...), err)
	}
	return words
}

func (m *machine) write(path, content string) {
	m.Helper()
	if _, err := m.agent.run(fmt.Sprintf("mkdir -p %s && cat >%s", filepath.Dir(path), path), content); err != nil {
		m.Fatalf("writing %s: %v", path, err)
	}
}

// property is what systemd says of a unit.
func (m *machine) property(unit, name string) string {
	m.Helper()
	return strings.TrimSpace(m.must("systemctl show --value --property=%s %s", name, unit))
}
