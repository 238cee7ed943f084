//go:build linux

package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	configNamespace = "kube-system"
	configName      = "scale"
	configKey       = "kubelet"
	assignment      = configNamespace + "/" + configName + "/" + configKey

	apiServerPart = "kube-apiserver"
	etcdPart      = "etcd"

	tail         = 2 * time.Second // after the last node, for what is still under way: events, the end of a watch
	startingWord = `"starting the kubelet with `
)

// A measurement is one, with so many nodes.
type measurement struct {
	Options
	cluster  *cluster.Cluster
	admin    rest.Interface
	nodes    []node
	running  supervisors
	observer *observer
	audit    *cluster.Audit
	figures  *Figures
	pods     int    // maxPods of the newest payload: no two are the same
	version  string // the newest resourceVersion of the ConfigMap
	starts   int    // of kubelets that were asked for
}

// Measure measures changes, and what it costs when there are none.
func Measure(ctx context.Context, o Options) (*Figures, error) {
	figures := &Figures{Nodes: o.Nodes, Processes: o.Processes}
	return figures, onNodes(ctx, o, func(m *measurement, renew func()) error {
		m.figures = figures
		return m.measure(ctx, renew)
	})
}

// onNodes brings a cluster and nodes up, measures, and takes them down. The supervisors are started by what measures, and their Leases
// are renewed from the call of renew on.
func onNodes(ctx context.Context, o Options, measure func(m *measurement, renew func()) error) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	c, err := cluster.Up(ctx, cluster.Options{Name: fmt.Sprintf("scale-%d-%d", os.Getpid(), o.Nodes), Audit: true, Log: o.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Down()) }()
	m := &measurement{Options: o, cluster: c}
	if err := m.prepare(ctx); err != nil {
		return fmt.Errorf("preparing %d nodes: %w", o.Nodes, err)
	}
	watching, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { m.observer.watch(watching) })
	defer func() { err = errors.Join(err, m.stopSupervisors()) }()
	return measure(m, func() { beside.Go(func() { renewLeases(watching, m.admin, m.nodes, postsIn(o.Trial)) }) })
}

func (m *measurement) prepare(ctx context.Context) (err error) {
	if err := allow(m.Nodes); err != nil {
		return err
	}
	if m.admin, err = configsync.NewClient(m.cluster.AdminConfig()); err != nil {
		return err
	}
	disk, err := mountDisk(m.cluster.Folder)
	if err != nil {
		return err
	}
	if err := m.cluster.ReadConfigMapsRole(ctx, configNamespace, configName); err != nil {
		return err
	}
	if m.nodes, err = makeNodes(ctx, m.cluster, m.admin, disk, m.Nodes); err != nil {
		return err
	}
	m.observer = &observer{client: m.admin, nodes: map[string]view{}}
	m.audit = m.cluster.ReadAudit()
	return nil
}

// A phase begins where the one before ended.
type phase struct {
	name string
	do   func(context.Context) error
}

func (m *measurement) measure(ctx context.Context, renew func()) error {
	return m.inTurn(ctx, []phase{
		{"nobody", func(ctx context.Context) error { return m.load(ctx, &m.figures.Alone) }},
		{"all start", func(ctx context.Context) error { return m.startAll(ctx, 0, view.local) }},
		{"steady", func(ctx context.Context) error { return m.load(ctx, &m.figures.Steady) }},
		{"Leases alone", func(ctx context.Context) error {
			renew()
			pause(ctx, leaseEvery)
			return m.load(ctx, &m.figures.Leases)
		}},
		{"one ConfigMap for all", m.assign},
		{"on trial", func(ctx context.Context) error { return m.load(ctx, &m.figures.OnTrial) }},
		{"footprint", func(context.Context) (err error) { m.figures.Node, err = m.running.footprint(m.Nodes); return err }},
		{"an edit for all", func(ctx context.Context) error { return m.edit(ctx, &m.figures.Edited, nil) }},
		{"all start again, with a spread", m.startAgain},
		{"an edit for all, with a spread", func(ctx context.Context) error { return m.edit(ctx, &m.figures.Spread, nil) }},
		{"the API server away in the middle of an edit", func(ctx context.Context) error { return m.edit(ctx, &m.figures.Outage, m.outage) }},
		{"all passed their trial", m.promoted},
		{"all stop", m.end},
	})
}

func (m *measurement) inTurn(ctx context.Context, phases []phase) error {
	for _, phase := range phases {
		begin := time.Now()
		if err := phase.do(ctx); err != nil {
			return fmt.Errorf("%d nodes, %s: %w", m.Nodes, phase.name, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, _ = fmt.Fprintf(m.Log, "%d nodes, %s: %.1f s\n", m.Nodes, phase.name, time.Since(begin).Seconds())
	}
	return nil
}

// startAll starts the supervisors, and waits until every Node says what it should.
func (m *measurement) startAll(ctx context.Context, spread time.Duration, is func(view) bool) (err error) {
	m.starts += m.Nodes
	if m.running, err = startSupervisors(ctx, m.cluster, m.Options, m.nodes, spread); err != nil {
		return err
	}
	if _, err := m.observer.await(ctx, m.observer.expect(is), m.Nodes); err != nil {
		return err
	}
	pause(ctx, tail)
	return nil
}

// startAgain ends all supervisors, and starts them with --edit-spread.
func (m *measurement) startAgain(ctx context.Context) error {
	if err := m.stopSupervisors(); err != nil {
		return err
	}
	if _, err := m.observer.await(ctx, m.observer.expect(func(v view) bool { return v.reason == "Stopped" }), m.Nodes); err != nil {
		return err
	}
	return m.startAll(ctx, m.Options.Spread, func(v view) bool { return v.runs(m.version) })
}

func (m *measurement) stopSupervisors() error {
	if m.running == nil {
		return nil
	}
	running := m.running
	m.running = nil
	return running.stop()
}

// assign makes one ConfigMap and then assigns it to all nodes.
func (m *measurement) assign(ctx context.Context) error {
	version, err := m.makeConfigMap(ctx)
	if err != nil {
		return err
	}
	return m.wave(ctx, &m.figures.Assigned, func() (string, error) { return version, m.assignAll(ctx) }, nil)
}

func (m *measurement) makeConfigMap(ctx context.Context) (version string, err error) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configName}, Data: map[string]string{configKey: m.payload()}}
	var made corev1.ConfigMap
	err = m.admin.Post().Namespace(configNamespace).Resource("configmaps").Body(object).Do(ctx).Into(&made)
	return made.ResourceVersion, err
}

// assignAll is as fast as the API server takes it.
func (m *measurement) assignAll(ctx context.Context) error { return m.assignNodes(ctx, m.nodes) }

func (m *measurement) assignNodes(ctx context.Context, nodes []node) error {
	change := []byte(`{"metadata":{"annotations":{"kubelet-supervisor.io/config-source":"` + assignment + `"}}}`)
	return each(ctx, nodes, func(ctx context.Context, n node) error {
		return m.admin.Patch(types.MergePatchType).Resource("nodes").Name(n.Name).Body(change).Do(ctx).Error()
	})
}

// edit changes the ConfigMap. during, where there is one, goes on while the change spreads.
func (m *measurement) edit(ctx context.Context, wave *Wave, during func(context.Context) error) error {
	return m.wave(ctx, wave, func() (string, error) { return m.editConfigMap(ctx) }, during)
}

func (m *measurement) editConfigMap(ctx context.Context) (version string, err error) {
	var written corev1.ConfigMap
	change := fmt.Appendf(nil, `{"data":{%q:%q}}`, configKey, m.payload())
	err = m.admin.Patch(types.MergePatchType).Namespace(configNamespace).Resource("configmaps").Name(configName).Body(change).Do(ctx).Into(&written)
	return written.ResourceVersion, err
}

// payload is a KubeletConfiguration that nobody has seen before.
func (m *measurement) payload() string {
	m.pods++
	return strings.Replace(m.cluster.KubeletConfig(), "maxPods: 20\n", fmt.Sprintf("maxPods: %d\n", 100+m.pods), 1)
}

// promoted waits until every Node says that its configuration is the last known good one.
func (m *measurement) promoted(ctx context.Context) error {
	is := func(v view) bool { return v.reason == "Active" }
	if _, err := m.observer.await(ctx, m.observer.expect(is), m.Nodes); err != nil {
		return err
	}
	return m.observer.hold("Active", is)
}

// end stops all and compares how often kubelets were started with how often they should.
func (m *measurement) end(context.Context) error {
	if err := m.stopSupervisors(); err != nil {
		return err
	}
	starts, err := m.logged(startingWord)
	m.figures.Starts = starts - m.starts
	return err
}

// logged is how often the supervisors of all nodes have said so.
func (m *measurement) logged(word string) (count int, err error) {
	for _, n := range m.nodes {
		log, err := os.ReadFile(n.log())
		if err != nil {
			return 0, err
		}
		count += bytes.Count(log, []byte(word))
	}
	return count, nil
}
