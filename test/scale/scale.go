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

// A fleet is one measurement.
type fleet struct {
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

// Measure brings a cluster and a fleet up, measures, and takes them down.
func Measure(ctx context.Context, o Options) (figures *Figures, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c, err := cluster.Up(ctx, cluster.Options{Name: fmt.Sprintf("scale-%d-%d", os.Getpid(), o.Nodes), Audit: true, Log: o.Log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Down()) }()
	f := &fleet{Options: o, cluster: c, figures: &Figures{Nodes: o.Nodes, Processes: o.Processes}}
	if err := f.prepare(ctx); err != nil {
		return nil, fmt.Errorf("preparing %d nodes: %w", o.Nodes, err)
	}
	watching, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { f.observer.watch(watching) })
	defer func() { err = errors.Join(err, f.stopSupervisors()) }()
	if err := f.measure(ctx, func() { beside.Go(func() { renewLeases(watching, f.admin, f.nodes) }) }); err != nil {
		return nil, err
	}
	return f.figures, nil
}

func (f *fleet) prepare(ctx context.Context) (err error) {
	if err := allow(f.Nodes); err != nil {
		return err
	}
	if f.admin, err = configsync.NewClient(f.cluster.AdminConfig()); err != nil {
		return err
	}
	disk, err := mountDisk(f.cluster.Folder)
	if err != nil {
		return err
	}
	if err := f.cluster.ReadConfigMapsRole(ctx, configNamespace, configName); err != nil {
		return err
	}
	if f.nodes, err = makeNodes(ctx, f.cluster, f.admin, disk, f.Nodes); err != nil {
		return err
	}
	f.observer = &observer{client: f.admin, nodes: map[string]view{}}
	f.audit = f.cluster.ReadAudit()
	return nil
}

// measure goes through all phases, each of which begins where the one before ended.
func (f *fleet) measure(ctx context.Context, renew func()) (err error) {
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"nobody", func(ctx context.Context) error { return f.load(ctx, &f.figures.Alone) }},
		{"all start", func(ctx context.Context) error { return f.startAll(ctx, 0, view.local) }},
		{"steady", func(ctx context.Context) error { return f.load(ctx, &f.figures.Steady) }},
		{"Leases alone", func(ctx context.Context) error {
			renew()
			pause(ctx, leaseEvery)
			return f.load(ctx, &f.figures.Leases)
		}},
		{"one ConfigMap for all", f.assign},
		{"on trial", func(ctx context.Context) error { return f.load(ctx, &f.figures.OnTrial) }},
		{"footprint", func(context.Context) (err error) { f.figures.Node, err = f.running.footprint(f.Nodes); return err }},
		{"an edit for all", func(ctx context.Context) error { return f.edit(ctx, &f.figures.Edited, nil) }},
		{"all start again, with a spread", f.startAgain},
		{"an edit for all, with a spread", func(ctx context.Context) error { return f.edit(ctx, &f.figures.Spread, nil) }},
		{"the API server away in the middle of an edit", func(ctx context.Context) error { return f.edit(ctx, &f.figures.Outage, f.outage) }},
		{"all passed their trial", f.promoted},
		{"all stop", f.end},
	} {
		begin := time.Now()
		if err := phase.do(ctx); err != nil {
			return fmt.Errorf("%d nodes, %s: %w", f.Nodes, phase.name, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, _ = fmt.Fprintf(f.Log, "%d nodes, %s: %.1f s\n", f.Nodes, phase.name, time.Since(begin).Seconds())
	}
	return nil
}

// startAll starts the supervisors, and waits until every Node says what it should.
func (f *fleet) startAll(ctx context.Context, spread time.Duration, is func(view) bool) (err error) {
	f.starts += f.Nodes
	if f.running, err = startSupervisors(ctx, f.cluster, f.Options, f.nodes, spread); err != nil {
		return err
	}
	if _, err := f.observer.await(ctx, f.observer.expect(is), f.Nodes); err != nil {
		return err
	}
	pause(ctx, tail)
	return nil
}

// startAgain ends all supervisors, and starts them with --edit-spread.
func (f *fleet) startAgain(ctx context.Context) error {
	if err := f.stopSupervisors(); err != nil {
		return err
	}
	if _, err := f.observer.await(ctx, f.observer.expect(func(v view) bool { return v.reason == "Stopped" }), f.Nodes); err != nil {
		return err
	}
	return f.startAll(ctx, f.Options.Spread, func(v view) bool { return v.runs(f.version) })
}

func (f *fleet) stopSupervisors() error {
	if f.running == nil {
		return nil
	}
	running := f.running
	f.running = nil
	return running.stop()
}

// assign makes one ConfigMap and then assigns it to all nodes, as fast as the API server takes it.
func (f *fleet) assign(ctx context.Context) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configName}, Data: map[string]string{configKey: f.payload()}}
	var made corev1.ConfigMap
	if err := f.admin.Post().Namespace(configNamespace).Resource("configmaps").Body(object).Do(ctx).Into(&made); err != nil {
		return err
	}
	change := []byte(`{"metadata":{"annotations":{"kubelet-supervisor.io/config-source":"` + assignment + `"}}}`)
	return f.wave(ctx, &f.figures.Assigned, func() (string, error) {
		return made.ResourceVersion, each(ctx, f.nodes, func(ctx context.Context, n node) error {
			return f.admin.Patch(types.MergePatchType).Resource("nodes").Name(n.Name).Body(change).Do(ctx).Error()
		})
	}, nil)
}

// edit changes the ConfigMap. during, where there is one, goes on while the change spreads.
func (f *fleet) edit(ctx context.Context, wave *Wave, during func(context.Context) error) error {
	change := fmt.Appendf(nil, `{"data":{%q:%q}}`, configKey, f.payload())
	return f.wave(ctx, wave, func() (string, error) {
		var written corev1.ConfigMap
		err := f.admin.Patch(types.MergePatchType).Namespace(configNamespace).Resource("configmaps").Name(configName).Body(change).Do(ctx).Into(&written)
		return written.ResourceVersion, err
	}, during)
}

// payload is a KubeletConfiguration that nobody has seen before.
func (f *fleet) payload() string {
	f.pods++
	return strings.Replace(f.cluster.KubeletConfig(), "maxPods: 20\n", fmt.Sprintf("maxPods: %d\n", 100+f.pods), 1)
}

// promoted waits until every Node says that its configuration is the last known good one.
func (f *fleet) promoted(ctx context.Context) error {
	is := func(v view) bool { return v.reason == "Active" }
	if _, err := f.observer.await(ctx, f.observer.expect(is), f.Nodes); err != nil {
		return err
	}
	return f.observer.hold("Active", is)
}

// end stops all and compares how often kubelets were started with how often they should.
func (f *fleet) end(context.Context) error {
	if err := f.stopSupervisors(); err != nil {
		return err
	}
	f.figures.Starts = -f.starts
	for _, n := range f.nodes {
		log, err := os.ReadFile(n.log())
		if err != nil {
			return err
		}
		f.figures.Starts += bytes.Count(log, []byte(startingWord))
	}
	return nil
}
