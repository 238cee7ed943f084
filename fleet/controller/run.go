package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/credential"
)

// Name is the controller's name as a client, in its Lease and in the objects that it makes.
const Name = rollout.FieldManager

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Options are what [Run] needs.
type Options struct {
	// Config has the address of the API server and the credentials.
	Config *rest.Config
	// Namespace is the namespace of the Lease.
	Namespace string
	// LeaderElect has the controller lead only while it holds the Lease, so that several may run.
	LeaderElect bool
	// PodUID is the UID of the pod that this process runs in. It is empty if that is not known.
	PodUID string
	// MetricsAddress and HealthAddress are the addresses of the two servers; "0" disables one.
	MetricsAddress, HealthAddress string
	// MetricsCertDir is the directory of the certificate for the metrics, tls.crt and tls.key, which may come later. Without it no metrics are served,
	// except with MetricsSelfSigned, which makes a certificate at the start.
	MetricsCertDir    string
	MetricsSelfSigned bool
	Log               logr.Logger
}

// Run runs the controller until ctx ends. It returns an error if the controller cannot start, and if it loses the Lease.
func Run(ctx context.Context, o Options) error {
	clock := &serverClock{monotonic: monotonic}
	config := o.settings(clock)
	lock, leads, err := o.elect(config)
	if err != nil {
		return fmt.Errorf("preparing the leader election: %w", err)
	}
	watches := &watchErrors{log: o.Log.WithName("rollout")}
	m, err := o.manager(config, lock, watches)
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	c, err := connect(ctx, m, config, parts{leader: leads, watches: watches, monotonic: monotonic, serverTime: clock.now, log: watches.log})
	if err != nil {
		return fmt.Errorf("connecting the controller to the API server: %w", err)
	}
	defer c.drains.end()
	return start(ctx, m)
}

// settings are the settings of every client of this process.
func (o *Options) settings(clock *serverClock) *rest.Config {
	config := rest.AddUserAgent(o.Config, Name)
	config.QPS = -1 // only PATCHes of Nodes are frequent, and they have a limit of their own
	away := &outage{monotonic: monotonic, log: o.Log}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dated{away.wrap(next), clock} })
	credential.Confine(config)
	config.WarningHandlerWithContext = warnings{o.Log}
	return config
}

// start runs the manager until ctx ends. Before its caches are synced the manager does not react to that end. Then start returns at once, because the
// process does not lead, and has no Lease to release.
func start(ctx context.Context, m manager.Manager) error {
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }() // start waits for it, or the process ends
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if !synced(context.WithoutCancel(ctx), m) {
		return nil
	}
	return <-ended
}

// synced reports whether the caches are complete.
func synced(ctx context.Context, m manager.Manager) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second/2) // a kubelet's probe waits for a second
	defer cancel()
	return m.GetCache().WaitForCacheSync(ctx)
}

// elect returns the lock of the election and what knows whether this process leads. Without an election the lock is nil.
func (o *Options) elect(config *rest.Config) (resourcelock.Interface, leader, error) {
	if !o.LeaderElect {
		return nil, alone{monotonic(), monotonic}, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the name of the host: %w", err)
	}
	identity := resourcelock.ResourceLockConfig{Identity: identityOf(host, o.PodUID)}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.Namespace, Name, identity, config, renewDeadline)
	if err != nil {
		return nil, nil, err
	}
	held := &lease{Interface: lock, duration: leaseDuration, monotonic: monotonic}
	return held, held, nil
}

// identityOf is the holder of the Lease. A pod starts a container only after the one before has ended, so the process that starts after a kill is the
// same holder, and does not wait until the Lease expires. Outside of a pod two processes may run at once, and each is a holder of its own.
func identityOf(host, pod string) string {
	if pod == "" {
		pod = string(uuid.NewUUID())
	}
	return host + "_" + pod
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme,
		authorizationv1.AddToScheme, policyv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

func (o *Options) manager(config *rest.Config, lock resourcelock.Interface, watches *watchErrors) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	duration, deadline, period := leaseDuration, renewDeadline, retryPeriod
	options := manager.Options{
		Scheme: scheme, Logger: o.Log,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return newMapper(), nil },
		Cache:          cache.Options{ByObject: cachedObjects(), ReaderFailOnMissingInformer: true, DefaultWatchErrorHandler: watches.handle},
		LeaderElection: o.LeaderElect, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &duration, RenewDeadline: &deadline, RetryPeriod: &period,
		HealthProbeBindAddress: o.HealthAddress,
		Metrics:                o.metricsServer(),
	}
	if lock != nil {
		options.LeaderElectionResourceLockInterface = lock
	}
	m, err := manager.New(config, options)
	if err != nil {
		return nil, err
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return m, m.AddReadyzCheck("caches", func(request *http.Request) error {
		if !synced(request.Context(), m) {
			return errors.New("the caches are not synced")
		}
		return nil
	})
}

// connect makes the controller, whose writes are fenced, and adds it to the manager.
func connect(ctx context.Context, m manager.Manager, config *rest.Config, p parts) (*Controller, error) {
	for object := range cachedObjects() {
		if _, err := m.GetCache().GetInformer(ctx, object); err != nil {
			return nil, fmt.Errorf("starting the cache of %T: %w", object, err)
		}
	}
	fenced := rest.CopyConfig(config)
	fenced.Wrap(func(next http.RoundTripper) http.RoundTripper { return &fence{next, p.leader} })
	writer, err := client.New(fenced, client.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("creating the client that writes: %w", err)
	}
	p.cached, p.live, p.writer = m.GetCache(), m.GetAPIReader(), writer
	if p.metrics, err = newMetrics(ctrlmetrics.Registry); err != nil {
		return nil, fmt.Errorf("registering the metrics: %w", err)
	}
	if p.events, err = recorder(m, config); err != nil {
		return nil, fmt.Errorf("creating the recorder of events: %w", err)
	}
	c := newController(p)
	if err := c.unbound.watch(ctx, m); err != nil {
		return nil, err
	}
	queue, err := controller.New("rollout", m, controller.Options{Reconciler: c, MaxConcurrentReconciles: 1,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, 10*time.Second)})
	if err != nil {
		return nil, fmt.Errorf("creating the queue: %w", err)
	}
	return c, c.watch(queue, m.GetCache())
}
