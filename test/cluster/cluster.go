//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

const (
	// NodeName is the name of the only node.
	NodeName = "n1"
	// NodeAddress is its InternalIP, on a veth pair both ends of which are in the namespace.
	NodeAddress = "10.99.0.1"
	// PauseImage is in the node's containerd: its program waits for SIGTERM.
	PauseImage = "registry.k8s.io/pause:3.10"

	newestKubernetes  = "1.36.3"
	dynamicKubernetes = "1.24.17"
)

// Options say which cluster to bring up.
type Options struct {
	Name        string    // tells it from others on this machine: at most 20 lower-case letters, digits and dashes
	Folder      string    // everything it writes; made by Up, removed by Down. "": kubelet-supervisor-NAME in the temporary folder
	APIServer   string    // "1.36.3" (also ""), "1.24.17", which has the feature gate DynamicKubeletConfig on, or another of test/parts/kubelets
	Kubelet     string    // "1.36.3" (also ""), or another version that is among the parts (test/parts/kubelets)
	Parts       string    // what test/parts/build.sh made. "": $KUBELET_SUPERVISOR_PARTS
	Audit       bool      // the API server notes who asked for what: AuditLog
	Objects     bool      // with Audit: also what of Nodes and KubeletPools, and what they are then
	AuditPolicy string    // with Audit: a policy whose rules come first
	Join        bool      // machines become nodes of it by kubeadm join: JoinKubeconfig
	Log         io.Writer // one line per step; nil: none
}

// A Cluster is up from Up to Down. Its methods may be called from several goroutines.
type Cluster struct {
	Name   string
	Folder string // log/PART.log, kubelet.yaml, n1.kubeconfig, admin.kubeconfig, pki/
	// Cgroups is what this machine has: "v1", "v1 hybrid" or "v2".
	Cgroups string

	parts      string
	apiServer  string
	kubelet    string
	audit      bool
	objects    bool
	auditRules string
	join       bool
	log        io.Writer
	authority  *authority
	claim      *claim

	mutex   sync.Mutex // guards what follows
	running map[string]*Program
	down    bool
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$`)

// Up brings a cluster up, which takes about four seconds, and returns when the API server is ready and containerd has the
// pause image. On any failure, the end of ctx included, it takes down what it had brought up. The caller calls Down.
func Up(ctx context.Context, options Options) (*Cluster, error) {
	c, err := prepare(options)
	if err != nil {
		return nil, err
	}
	if err := c.up(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("bringing up cluster %s: %w", c.Name, err), c.Down())
	}
	return c, nil
}

// prepare checks the options and claims the name; nothing of the cluster is there yet.
func prepare(options Options) (*Cluster, error) {
	c := &Cluster{Name: options.Name, Folder: options.Folder, parts: options.Parts, apiServer: options.APIServer, kubelet: options.Kubelet, audit: options.Audit, objects: options.Objects, auditRules: options.AuditPolicy, join: options.Join, log: options.Log, running: map[string]*Program{}}
	if !validName.MatchString(c.Name) {
		return nil, fmt.Errorf("cluster name %q: give at most 20 lower-case letters, digits and dashes", c.Name)
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("a cluster needs network namespaces, cgroups and mounts: run as root")
	}
	if c.log == nil {
		c.log = io.Discard
	}
	if c.apiServer == "" {
		c.apiServer = newestKubernetes
	}
	if c.kubelet == "" {
		c.kubelet = newestKubernetes
	}
	if c.parts == "" {
		c.parts = os.Getenv("KUBELET_SUPERVISOR_PARTS")
	}
	parts := []string{"etcd", "kube-apiserver-" + c.apiServer, "containerd", "containerd-shim-runc-v2", "ctr", "pause.tar"}
	if c.join {
		parts = append(parts, controllerManager+"-"+c.apiServer)
	}
	for _, part := range parts {
		if _, err := os.Stat(c.part(part)); err != nil {
			return nil, fmt.Errorf("looking for the parts of a cluster in %q (KUBELET_SUPERVISOR_PARTS; make parts builds them): %w", c.parts, err)
		}
	}
	if c.Folder == "" {
		c.Folder = filepath.Join(os.TempDir(), "kubelet-supervisor-"+c.Name)
	}
	var err error
	if c.Folder, err = filepath.Abs(c.Folder); err != nil {
		return nil, err
	}
	if len(c.Folder) > 80 {
		return nil, fmt.Errorf("folder %s: longer than 80 bytes, so containerd's socket could not be made in it", c.Folder)
	}
	if err := cleanAbandoned(c.log); err != nil {
		return nil, err
	}
	if c.claim, err = newClaim(c.Name); err != nil {
		return nil, err
	}
	if c.Folder, err = makeFolder(c.Folder); err == nil {
		err = c.claim.record(c.Folder)
	}
	if err != nil {
		return nil, errors.Join(err, c.claim.release())
	}
	live.add(c)
	return c, nil
}

func (c *Cluster) up(ctx context.Context) error {
	begin := time.Now()
	if err := c.makeNamespace(); err != nil {
		return err
	}
	var err error
	if c.Cgroups, err = makeCgroups(cgroupName(c.Name)); err != nil {
		return err
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	for _, start := range []func() error{c.startContainerd, c.startEtcd, c.startAPIServer} {
		if err := start(); err != nil {
			return err
		}
	}
	if err := c.waitForContainerd(ctx); err != nil {
		return err
	}
	if err := c.importPauseImage(ctx); err != nil {
		return err
	}
	if err := c.waitForAPIServer(ctx); err != nil {
		return err
	}
	if err := c.makeServiceAccounts(ctx); err != nil {
		return err
	}
	if c.join {
		if err := c.letJoin(); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(c.log, "cluster %s: up in %.1f s (kube-apiserver %s, containerd; cgroup %s; folder %s)\n",
		c.Name, time.Since(begin).Seconds(), c.apiServer, c.Cgroups, c.Folder)
	return nil
}

// makeFolder makes a new folder and gives its path without links, as mounts have it. Down removes it with all that is in it,
// so it must have been nobody's.
func makeFolder(folder string) (string, error) {
	if entries, err := os.ReadDir(folder); err == nil && len(entries) > 0 {
		return "", fmt.Errorf("folder %s: is not empty, and would be removed at the end; name another", folder)
	}
	if err := os.MkdirAll(filepath.Join(folder, "log"), 0o755); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(folder)
}

// Down takes the cluster down and waits until nothing of it is left. It may be called again, and then does nothing.
func (c *Cluster) Down() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.down {
		return nil
	}
	// containerd goes last: the others want no grace, for nobody reads their data again.
	for _, name := range []string{controllerManager, apiServer, etcd, containerd} {
		if p := c.running[name]; p != nil {
			p.end(0)
			delete(c.running, name)
		}
	}
	if err := remove(c.Name, c.Folder); err != nil {
		return fmt.Errorf("taking down cluster %s: %w", c.Name, err)
	}
	if err := c.claim.release(); err != nil {
		return fmt.Errorf("taking down cluster %s: %w", c.Name, err)
	}
	c.down = true
	live.remove(c)
	return nil
}

func (c *Cluster) part(name string) string { return filepath.Join(c.parts, name) }
func (c *Cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.Folder}, elements...)...)
}
