//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// patience is far more than any change takes here.
const patience = time.Minute

// A demo is one telling of the story.
type demo struct {
	*printer
	cluster    *cluster.Cluster
	client     *rest.RESTClient
	supervisor *supervisor
	fleet      *fleet
	folder     string    // where the commands run; it has kubectl and the files they name
	changed    time.Time // when the newest command of a step had returned
	begun      time.Time
	last       view
	good       string // what the pool has assigned to all three
	times      []string
}

// show brings everything up, tells the story and takes everything down.
func show(ctx context.Context, p *printer) (err error) {
	begun := time.Now()
	p.heading("Bringing up etcd, kube-apiserver and containerd in a network namespace of their own")
	c, err := cluster.Up(ctx, cluster.Options{Name: "demo", Log: p})
	if err != nil {
		return err
	}
	defer func() {
		if left := c.Down(); left != nil {
			err = errors.Join(err, left)
			return
		}
		p.heading("All that was started is stopped and removed")
	}()
	d := &demo{printer: p, cluster: c, folder: filepath.Join(c.Folder, "demo"), begun: begun, fleet: &fleet{}}
	if d.client, err = configsync.NewClient(c.AdminConfig()); err != nil {
		return err
	}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	if d.supervisor, err = startSupervisor(p, c); err != nil {
		return err
	}
	err = d.tellAll(ctx)
	if err == nil {
		err = d.end()
	}
	if err != nil && ctx.Err() == nil {
		d.printLogs()
	}
	return errors.Join(err, d.fleet.stop(), d.supervisor.stop())
}

// tellAll tells the story of one node, and then that of three.
func (d *demo) tellAll(ctx context.Context) error {
	d.changed = time.Now()
	for _, s := range story() {
		if err := d.tell(ctx, s); err != nil {
			return err
		}
	}
	for _, part := range []func(context.Context) error{d.installPools, d.join, d.rollGood, d.rollDeadly, d.goBack} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tell does what a step says and checks all that it expects.
func (d *demo) tell(ctx context.Context, s step) error {
	if s.title != "" {
		d.heading(s.title)
	}
	before, err := d.supervisor.kubelet()
	if s.sameKubelet && err != nil {
		return err
	}
	d.row("  ", s.words)
	if err := d.run(ctx, s.commands...); err != nil {
		return err
	}
	if s.expected != "" {
		if err := d.see(ctx, s); err != nil {
			return err
		}
	}
	if s.sameKubelet {
		after, err := d.supervisor.kubelet()
		if err != nil || after != before {
			return errors.Join(fmt.Errorf("expected: the kubelet is not restarted; seen: its pid %d was %d", after, before), err)
		}
		d.ok(fmt.Sprintf("the kubelet was not restarted: pid %d as before", after))
	}
	if s.field != "" {
		return d.configz(ctx, s.field, s.value)
	}
	return nil
}

// see waits until the Node is as the step expects, and shows it and how long that took.
func (d *demo) see(ctx context.Context, s step) (err error) {
	if d.last, err = d.await(ctx, s.node); err != nil {
		return fmt.Errorf("expected: %s; seen: %w", s.expected, err)
	}
	took := time.Since(d.changed).Seconds()
	for _, row := range d.last.rows() {
		d.row("    "+row[0], row[1])
	}
	d.measured(took, s.expected)
	return nil
}

// measured tells that something was seen, so many seconds after the command that asked for it.
func (d *demo) measured(seconds float64, seen string) {
	d.ok(fmt.Sprintf("%.2f s: %s", seconds, seen))
	d.times = append(d.times, fmt.Sprintf("  %6.2f s  %s", seconds, seen))
}

// configz asks the kubelet itself, through the API server, for a number of the configuration it runs with.
func (d *demo) configz(ctx context.Context, field string, value float64) error {
	text, err := d.ask(ctx, "kubectl get --raw /api/v1/nodes/n1/proxy/configz")
	if err != nil {
		return err
	}
	var answer struct {
		KubeletConfig map[string]any `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("reading configz: %w", err)
	}
	if seen := answer.KubeletConfig[field]; seen != value {
		return fmt.Errorf("expected: %s: %v in configz; seen: %v", field, value, seen)
	}
	d.ok(fmt.Sprintf("the kubelet runs with %s: %v", field, value))
	return nil
}

// printLogs shows the ends of the logs; of the kubelet's lines only warnings and errors.
func (d *demo) printLogs() {
	d.printLog("kubelet-supervisor and its kubelet", d.supervisor.log)
	for _, program := range d.fleet.programs {
		d.printLog(filepath.Base(program.Log), program.Log)
	}
}

func (d *demo) printLog(what, file string) {
	d.heading("The end of the log of " + what)
	end, _ := exec.Command("bash", "-c", `grep -v "^I[0-9]" "$1" | tail -n 40`, "bash", file).CombinedOutput()
	_, _ = d.Write(end)
}

// end stops what runs, and says what was measured and on what machine.
func (d *demo) end() error {
	d.heading("kubelet-supervisor is asked to stop")
	kubelet, err := d.supervisor.kubelet()
	d.command(fmt.Sprintf("kill -TERM %d", d.supervisor.process.Pid))
	if err := errors.Join(err, d.supervisor.stop()); err != nil {
		return err
	}
	if !errors.Is(syscall.Kill(kubelet, 0), syscall.ESRCH) {
		return fmt.Errorf("expected: the kubelet, pid %d, is gone; seen: it is not", kubelet)
	}
	d.ok("it ended with exit code 0, and its kubelet is gone")
	if err := d.fleet.stop(); err != nil {
		return err
	}
	d.ok("so have the controller, the other two supervisors and their kubelets")

	d.heading("Measured here, from the return of the command to the Node that says so")
	for _, line := range d.times {
		d.line("", line)
	}
	d.line("", fmt.Sprintf("  %6.0f s  all that is above", time.Since(d.begun).Seconds()))
	info := d.last.info
	d.row("  ", fmt.Sprintf("Machine: cgroup %s, %d processors, Linux %s, %s; kubelet %s, %s", d.cluster.Cgroups, runtime.NumCPU(),
		info.KernelVersion, info.OSImage, info.KubeletVersion, info.ContainerRuntimeVersion))
	return nil
}
