//go:build e2e

// Package fleet tests kubelet-supervisor-controller as it is shipped, on a real API server: its manifests, its rights, its policies, and
// rollouts over many nodes.
//
// The nodes are puppets: goroutines with the identity of a node each, that publish with the supervisor's own publisher what a supervisor
// would. All tests share one cluster and, but for those that need one of their own, one controller. Each has nodes and a pool of its own,
// named after it, so that they may run at the same time. What the controller has sent is read in the API server's audit log.
//
// What takes longer than a minute is named TestLong…, and has the tag long, too. It needs root, and KUBELET_SUPERVISOR_PARTS.
package fleet

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// scratch holds what the tests build; it is removed at the end.
var scratch string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if scratch, err = os.MkdirTemp("", "kubelet-supervisor-fleet-"); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(scratch)
		if err := manyAtOnce(); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return cluster.Main(m)
	}())
}

// manyAtOnce lets more tests run at once than there are processors, unless somebody has said how many: they wait most of the time.
func manyAtOnce() error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", "2")
}

// controllerUser is the controller that runs here, outside of the cluster; controllerAccount is that of one in a pod.
const (
	controllerUser    = deploy.ControllerUser
	controllerAccount = "system:serviceaccount:" + deploy.ControllerNamespace + ":" + deploy.ControllerName
)

// fleet is the shared cluster.
type fleet struct {
	*cluster.Cluster
	admin  client.Client
	binary string
	audit  audit

	steadied   sync.Once
	controller *cluster.Program
	failure    error
}

// shared brings the cluster up once, with the manifests as they are shipped.
func shared(t *testing.T) *fleet {
	t.Helper()
	f, err := up()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var up = sync.OnceValues(func() (*fleet, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	f := &fleet{binary: os.Getenv("KUBELET_SUPERVISOR_TEST_CONTROLLER")}
	if f.binary == "" {
		f.binary = filepath.Join(scratch, "kubelet-supervisor-controller")
		build := exec.CommandContext(ctx, "go", "build", "-o", f.binary, "../../cmd/kubelet-supervisor-controller")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building the controller: %w\n%s", err, output)
		}
	}
	var err error
	if f.Cluster, err = cluster.Up(ctx, cluster.Options{Name: fmt.Sprintf("fleet-%d", os.Getpid()), Audit: true, AuditPolicy: deploy.AuditPolicy, Log: os.Stderr}); err != nil {
		return nil, err
	}
	if f.admin, err = newClient(f.AdminConfig()); err != nil {
		return nil, err
	}
	return f, f.install(ctx)
})

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{authenticationv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, rbacv1.AddToScheme, policyv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// install applies all manifests but the Deployment's, for nobody would run it here.
func (f *fleet) install(ctx context.Context) error {
	folder := filepath.Join(scratch, "manifests")
	for from, name := range map[fs.FS]string{deploy.Manifests: "manifests/*.yaml", deploy.ControllerManifests: "manifests/controller/*.yaml"} {
		files, err := fs.Glob(from, name)
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := fs.ReadFile(from, file)
			if err != nil {
				return err
			}
			to := filepath.Join(scratch, file)
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(to, text, 0o600); err != nil {
				return err
			}
		}
	}
	if _, err := f.Kubectl(ctx, "apply", "--server-side", "-k", folder); err != nil {
		return err
	}
	if _, err := f.Kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(folder, "controller")); err != nil {
		return err
	}
	if err := f.bindControllers(ctx); err != nil {
		return err
	}
	_, err := f.Kubectl(ctx, "wait", "--for=condition=Established", "crd/kubeletpools.kubelet-supervisor.io", "--timeout=60s")
	if err != nil {
		return err
	}
	return f.policiesHold(ctx)
}

// bindControllers binds what install binds to one or the other to both, by names of its own: tests install either.
func (f *fleet) bindControllers(ctx context.Context) error {
	for name, user := range map[string]string{"test-user": controllerUser, "test-account": controllerAccount} {
		creates := [][]string{{"create", "clusterrolebinding", name, "--clusterrole=" + deploy.ControllerName, "--user=" + user}}
		for _, namespace := range []string{deploy.Namespace, deploy.ControllerNamespace, "default"} {
			creates = append(creates, []string{"create", "rolebinding", name, "--namespace=" + namespace, "--role=" + deploy.ControllerName, "--user=" + user})
		}
		for _, create := range creates {
			if _, err := f.Kubectl(ctx, create...); err != nil && !strings.Contains(err.Error(), "already exists") {
				return err
			}
		}
	}
	return nil
}

// policiesHold waits until the API server holds to the policies, which takes it a moment.
func (f *fleet) policiesHold(ctx context.Context) error {
	for {
		pool := smallPool("probe")
		err := f.admin.Create(ctx, pool, client.DryRunAll)
		if err != nil {
			return err
		}
		made := &corev1.ConfigMap{}
		made.Namespace, made.Name = deploy.Namespace, "pool-probe-0123456789"
		if err := f.admin.Create(ctx, made, client.DryRunAll); apierrors.IsForbidden(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// credentials writes a kubeconfig for a user.
func (f *fleet) credentials(user string, groups ...string) (string, error) {
	config, err := f.IdentityConfig(user, groups...)
	if err != nil {
		return "", err
	}
	return f.kubeconfigFor(config.Host, config)
}

func (f *fleet) kubeconfigFor(server string, config *rest.Config) (string, error) {
	file, err := os.CreateTemp(scratch, "kubeconfig-")
	if err != nil {
		return "", err
	}
	defer file.Close()
	return file.Name(), cluster.WriteKubeconfig(file.Name(), server, config)
}

// launch starts a controller as the user that it is outside of the cluster.
func (f *fleet) launch(name string, flags ...string) (*cluster.Program, error) {
	return f.launchIn("", name, flags...)
}

// launchIn starts one in a pod, as its Deployment says; "" is none.
func (f *fleet) launchIn(pod, name string, flags ...string) (*cluster.Program, error) {
	kubeconfig, err := f.credentials(controllerUser)
	if err != nil {
		return nil, err
	}
	words := append([]string{"/usr/bin/env", "POD_UID=" + pod, f.binary, "--kubeconfig=" + kubeconfig, "--health-address=0", "--metrics-address=0"}, flags...)
	return f.Launch(filepath.Join(f.Folder, "log", name+".log"), words...)
}

// start starts one for a test that is not parallel. It ends with that, before the shared one begins.
func (f *fleet) start(t *testing.T, name string, flags ...string) *cluster.Program {
	t.Helper()
	p, err := f.launch(name, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Signal(syscall.SIGCONT)
		_ = p.Stop(30 * time.Second)
		if t.Failed() {
			t.Log(p.LastWords())
		}
	})
	return p
}

// steady is the controller of the tests that need none of their own. It ends with the cluster.
func (f *fleet) steady(t *testing.T) *cluster.Program {
	t.Helper()
	f.steadied.Do(func() { f.controller, f.failure = f.launch("controller") })
	if f.failure != nil {
		t.Fatal(f.failure)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.controller.LastWords())
		}
	})
	return f.controller
}
