//go:build linux

package scale

import (
	"context"
	"fmt"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"

	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// Machines are nodes with a real supervisor and a fake kubelet each, on the cluster of another measurement.
type Machines struct {
	options  Options
	cluster  *cluster.Cluster
	admin    rest.Interface
	nodes    []node
	renewing sync.WaitGroup
	stop     context.CancelFunc

	mutex   sync.Mutex // guards one that is started again
	running supervisors
}

// MakeMachines makes their Nodes, bare ones. Nothing runs on them before Start.
func MakeMachines(ctx context.Context, c *cluster.Cluster, o Options) (*Machines, error) {
	m := &Machines{options: o, cluster: c, stop: func() {}}
	if o.Nodes == 0 {
		return m, nil
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := allow(o.Nodes); err != nil {
		return nil, err
	}
	disk, err := mountDisk(c.Folder)
	if err != nil {
		return nil, err
	}
	if m.admin, err = configsync.NewClient(c.AdminConfig()); err != nil {
		return nil, err
	}
	if m.nodes, err = makeNodes(ctx, c, m.admin, disk, o.Nodes); err != nil {
		return nil, fmt.Errorf("making %d machines: %w", o.Nodes, err)
	}
	return m, nil
}

// Start starts the supervisors, and renews their kubelets' Leases until Stop.
func (m *Machines) Start(ctx context.Context) (err error) {
	if len(m.nodes) == 0 {
		return nil
	}
	if m.running, err = startSupervisors(ctx, m.cluster, m.options, m.nodes, m.options.Spread); err != nil {
		return err
	}
	ctx, m.stop = context.WithCancel(ctx)
	m.renewing.Go(func() { renewLeases(ctx, m.admin, m.nodes, postsIn(m.options.Trial)) })
	return nil
}

// Kill kills the supervisor of one machine, and starts it again, as systemd does. Each has to be a process. Its kubelet is left over, for there is
// no cgroup that is emptied.
func (m *Machines) Kill(i int) error {
	n, old := m.nodes[i], m.running[i]
	old.Signal(syscall.SIGKILL)
	<-old.Done
	program, err := n.supervise(m.cluster, m.options, m.options.Spread)
	if err != nil {
		return fmt.Errorf("starting the supervisor of node %s again: %w", n.Name, err)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.running[i] = program
	return nil
}

// PID is that of one machine's supervisor.
func (m *Machines) PID(i int) int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.running[i].PID()
}

// Stop returns when all have ended.
func (m *Machines) Stop() error {
	m.stop()
	m.renewing.Wait()
	running := m.running
	m.running = nil
	return running.stop()
}

// Restart ends the supervisor of a node, by its number, and its kubelet with it, and starts both again. It is for Options.Processes.
func (m *Machines) Restart(i int) error {
	if err := m.running[i].Stop(stopWithin); err != nil {
		return err
	}
	program, err := m.nodes[i].supervise(m.cluster, m.options, m.options.Spread)
	if err != nil {
		return err
	}
	m.running[i] = program
	return nil
}

// Folders are those of their Nodes, in the order of Options.Binaries: each has state/, run/ and log, and its Node's name.
func (m *Machines) Folders() (folders []string) {
	for _, n := range m.nodes {
		folders = append(folders, n.Folder)
	}
	return folders
}

// Metrics are the addresses of the supervisors' metrics, by the names of their Nodes, where Options.Metrics has them on.
func (m *Machines) Metrics() map[string]string {
	at := make(map[string]string, len(m.nodes))
	for _, n := range m.nodes {
		at[n.Name] = m.options.metrics(n)
	}
	return at
}

// Logs are the supervisors' log files, by the names of their Nodes.
func (m *Machines) Logs() map[string]string {
	logs := make(map[string]string, len(m.nodes))
	for _, n := range m.nodes {
		logs[n.Name] = n.log()
	}
	return logs
}
