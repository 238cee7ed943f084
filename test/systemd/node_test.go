//go:build systemd

package systemd

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

const (
	dropIn   = "/etc/systemd/system/kubelet.service.d/zz-kubelet-supervisor.conf"
	recorded = "/var/log/kubelets" // by the fake kubelets
)

// What kubeadm's packages bring (https://github.com/kubernetes/release, cmd/krel/templates/latest/kubeadm).
const (
	kubeletUnit = `[Unit]
Description=kubelet: The Kubernetes Node Agent
Wants=network-online.target
After=network-online.target

[Service]
Environment=FAKE_KUBELET_RECORD=` + recorded + `
# A real one takes 17 to 50 ms over its end. systemd asks it and the supervisor at the same time.
Environment="FAKE_KUBELET=stopAfter: 50ms"
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
`
	kubeadmDropIn = `# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`
	// bootstrap is for a cluster that nobody has.
	bootstrap     = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: u, user: {token: t.t}}]}\n"
	configuration = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
)

// kubeadm makes the machine a node that kubeadm's packages were installed on, with this kubelet.
func (m *machine) kubeadm(kubeletProgram string) {
	m.Helper()
	m.must("install /shared/%s %s", kubeletProgram, m.kubelet)
	at := strings.NewReplacer("/usr/bin/kubelet", m.kubelet)
	m.write("/usr/lib/systemd/system/kubelet.service", at.Replace(kubeletUnit))
	m.write("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", at.Replace(kubeadmDropIn))
	m.must("systemctl daemon-reload && systemctl enable kubelet")
}

// join does to the node what kubeadm join does before it starts the kubelet. There is no cluster behind it.
func (m *machine) join() {
	m.Helper()
	m.write("/var/lib/kubelet/config.yaml", configuration)
	m.write("/etc/kubernetes/bootstrap-kubelet.conf", bootstrap)
	m.write("/var/lib/kubelet/kubeadm-flags.env", `KUBELET_KUBEADM_ARGS="--node-labels=a=b"`+"\n")
}

// joined is a node whose kubelet runs, and is what it was before the supervisor came.
func (m *machine) joined() {
	m.Helper()
	m.kubeadm("fake")
	m.join()
	m.must("systemctl start kubelet")
	await(m.T, "the kubelet alone", func() error { return m.only(m.property("kubelet", "MainPID")) })
}

// supervised is such a node under the supervisor, from a package.
func (m *machine) supervised() (kubeletPID string) {
	m.Helper()
	m.joined()
	m.must("dpkg -i %s", m.deb("old"))
	m.must("kubelet-supervisor enable --now")
	return m.healthy("kubelet")
}

// deb and rpm are the packages' files inside.
func (m *machine) deb(which string) string { return m.packaged(which, "kubelet-supervisor_*.deb") }
func (m *machine) rpm(which string) string { return m.packaged(which, "kubelet-supervisor-[0-9]*.rpm") }

func (m *machine) packaged(which, pattern string) string {
	m.Helper()
	files, err := filepath.Glob(filepath.Join(shared, which, pattern))
	if err != nil || len(files) != 1 {
		m.Fatalf("%v of %s/%s: %v", files, which, pattern, err)
	}
	return filepath.Join("/shared", which, filepath.Base(files[0]))
}

// only fails unless this kubelet, and no other, is there.
func (m *machine) only(pid string) error {
	m.Helper()
	if found := m.pids(m.kubelet); len(found) != 1 || found[0] != pid {
		return fmt.Errorf("kubelets %v, want only %s", found, pid)
	}
	return nil
}

// status is what kubelet-supervisor status -o json says, as far as it is looked at.
type status struct {
	Running    bool
	Supervisor struct{ PID int }
	Child      *struct{ PID int }
	Healthy    bool
	Condition  struct{ Reason string }
	Trial      *struct {
		Healthy, Left duration
		Failures      int
	}
	text string
}

type duration struct{ time.Duration }

func (d *duration) UnmarshalText(text []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(text))
	return err
}

func (m *machine) status() (s status, err error) {
	s.text, err = m.try("kubelet-supervisor status -o json 2>&1")
	if err != nil {
		return s, fmt.Errorf("%w: %s", err, s.text)
	}
	return s, json.Unmarshal([]byte(s.text), &s)
}

// healthy waits until the unit's main process is the supervisor, with the only kubelet there is as its healthy child, and gives that.
func (m *machine) healthy(unit string) (kubeletPID string) {
	m.Helper()
	await(m.T, "a healthy kubelet under the supervisor", func() error {
		s, err := m.status()
		switch main := m.property(unit, "MainPID"); {
		case err != nil:
			return err
		case !s.Healthy || s.Child == nil:
			return fmt.Errorf("not healthy: %s", s.text)
		case fmt.Sprint(s.Supervisor.PID) != main || strings.TrimSuffix(m.program(main), " (deleted)") != m.supervisor:
			return fmt.Errorf("the unit's main process is %s (%s), the status speaks of %d", main, m.program(main), s.Supervisor.PID)
		}
		kubeletPID = fmt.Sprint(s.Child.PID)
		return m.only(kubeletPID)
	})
	return kubeletPID
}

// event is a line that a fake kubelet recorded.
type event struct {
	Event string
	PID   int
	Argv  []string
}

// starts are the kubelets that were started so far, but for those that were only asked.
func (m *machine) starts() (starts []event) {
	m.Helper()
	for line := range strings.Lines(m.read(recorded)) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			m.Fatal(err)
		}
		if e.Event == "start" {
			starts = append(starts, e)
		}
	}
	return starts
}
