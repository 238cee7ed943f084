package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
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
	folder     string    // where the commands run; it has kubectl and the files they name
	changed    time.Time // when the newest command of a step had returned
	last       view
	times      []string
}

// show brings everything up, tells the story and takes everything down.
func show(ctx context.Context, p *printer) (err error) {
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
	d := &demo{printer: p, cluster: c, folder: filepath.Join(c.Folder, "demo")}
	if d.client, err = configsync.NewClient(c.AdminConfig()); err != nil {
		return err
	}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	if d.supervisor, err = startSupervisor(p, c); err != nil {
		return err
	}
	d.changed = time.Now()
	for _, s := range story() {
		if err := d.tell(ctx, s); err != nil {
			if ctx.Err() == nil {
				d.printLog()
			}
			return errors.Join(err, d.supervisor.stop())
		}
	}
	if err := d.end(); err != nil {
		d.printLog()
		return err
	}
	return nil
}

// prepare writes what the commands need: a kubectl for this cluster, and the configurations, each the node's own with a few
// other values.
func (d *demo) prepare(ctx context.Context) error {
	kubectl := "#!/bin/sh\nexec '" + strings.Join(d.cluster.KubectlArguments(), "' '") + "' \"$@\"\n"
	err := errors.Join(os.Mkdir(d.folder, 0o700), os.WriteFile(filepath.Join(d.folder, "kubectl"), []byte(kubectl), 0o700))
	for name, lines := range configurations {
		content := strings.Replace(d.cluster.KubeletConfig(), localLines, lines, 1)
		if !strings.Contains(content, lines) {
			err = errors.Join(err, fmt.Errorf("writing %s.yaml: the node's own configuration has no %q to replace", name, localLines))
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(d.folder, name+".yaml"), []byte(content), 0o600))
	}
	if err != nil {
		return err
	}
	d.row("    ", "in another terminal, meanwhile: "+filepath.Join(d.folder, "kubectl")+" get node n1 -o yaml")
	d.heading("Letting the nodes read these ConfigMaps, and starting kubelet-supervisor with a real kubelet")
	for _, line := range permissions {
		if err := d.run(ctx, line, d); err != nil {
			return err
		}
	}
	return nil
}

// run shows a shell command and runs it just as it is shown.
func (d *demo) run(ctx context.Context, line string, output io.Writer) error {
	d.command(line)
	command := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", line)
	command.Dir, command.Env = d.folder, append(os.Environ(), "PATH="+d.folder+":"+os.Getenv("PATH"))
	command.WaitDelay = time.Second // what bash has started may outlive it and hold the pipes
	var stderr bytes.Buffer
	command.Stdout, command.Stderr = output, &stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("running %s: %w: %s", line, err, strings.TrimSpace(stderr.String()))
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
	for _, line := range s.commands {
		if err := d.run(ctx, line, d); err != nil {
			return err
		}
		d.changed = time.Now()
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
	d.ok(fmt.Sprintf("%.2f s: %s", took, s.expected))
	d.times = append(d.times, fmt.Sprintf("  %6.2f s  %s", took, s.expected))
	return nil
}

// configz asks the kubelet itself, through the API server, for a number of the configuration it runs with.
func (d *demo) configz(ctx context.Context, field string, value float64) error {
	var output bytes.Buffer
	if err := d.run(ctx, "kubectl get --raw /api/v1/nodes/n1/proxy/configz", &output); err != nil {
		return err
	}
	var answer struct {
		KubeletConfig map[string]any `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(output.Bytes(), &answer); err != nil {
		return fmt.Errorf("reading configz: %w", err)
	}
	if seen := answer.KubeletConfig[field]; seen != value {
		return fmt.Errorf("expected: %s: %v in configz; seen: %v", field, value, seen)
	}
	d.ok(fmt.Sprintf("the kubelet runs with %s: %v", field, value))
	return nil
}

// printLog shows the end of the supervisor's log, of the kubelet's lines in it only warnings and errors.
func (d *demo) printLog() {
	d.heading("The end of the log of kubelet-supervisor and its kubelet")
	end, _ := exec.Command("bash", "-c", `grep -v "^I[0-9]" "$1" | tail -n 40`, "bash", d.supervisor.log).CombinedOutput()
	_, _ = d.Write(end)
}

// end stops the supervisor, and says what was measured and on what machine.
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

	d.heading("Measured here, from the return of the command to the Node that says so")
	for _, line := range d.times {
		d.line("", line)
	}
	info := d.last.info
	d.row("  ", fmt.Sprintf("Machine: cgroup %s, %d processors, Linux %s, %s; kubelet %s, %s", d.cluster.Cgroups, runtime.NumCPU(),
		info.KernelVersion, info.OSImage, info.KubeletVersion, info.ContainerRuntimeVersion))
	return nil
}
