//go:build linux

package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

var (
	errOffline      = errors.New("there is no connection to the API server")
	errNoKubeconfig = errors.New("the kubelet has no kubeconfig, so its Node and pods are not known; give one with --kubeconfig")
)

// Impact describes a proposed change of a node's configuration.
type Impact struct {
	Arguments            []string                // the kubelet's command line, without the binary
	Kubeconfig, NodeName string                  // "": the kubelet's
	Now, Then            kubeletconfig.Effective // as the kubelet told them
}

// Forecast returns what the change would do to running pods, and what kept it from knowing more. It asks the API server once.
func (i Impact) Forecast(ctx context.Context, logger *zap.Logger) (f forecast.Forecast, troubles []string) {
	arguments := commandline.Parse(i.Arguments)
	asked := inquiry{Logger: logger, rootDir: kubeletconfig.RootDir(i.Arguments),
		runtime: kubeletconfig.EffectiveEndpoints(i.Arguments, "").Runtime, offline: errNoKubeconfig,
		tries:     triesMissing, // nothing is asked again
		effective: func() (now, then kubeletconfig.Effective, troubles []error) { return i.Now, i.Then, nil }}
	if path := cmp.Or(i.Kubeconfig, arguments.Kubeconfig); path != "" {
		if client, name, err := connect(path, i.NodeName, arguments, nil); err != nil {
			asked.offline = err
		} else {
			asked.client, asked.nodeName = client, name
		}
	}
	facts, errs := asked.facts(ctx)
	for _, err := range errs {
		troubles = append(troubles, err.Error())
	}
	return forecast.Of(facts), troubles
}

// unknowable marks what no later look can find out (rule 19): no change waits for it. Whatever else keeps a forecast from
// being made is asked again.
type unknowable struct{ error }

// An inquiry finds the facts of a forecast, in a supervisor or in another process.
type inquiry struct {
	*zap.Logger
	client    rest.Interface // nil: there is no connection
	offline   error          // why
	nodeName  string
	rootDir   string // the kubelet's
	runtime   string // endpoint of the container runtime, where the configuration names none (before Kubernetes 1.27)
	effective func() (now, then kubeletconfig.Effective, troubles []error)
	tries     int // looks before this one in a row that were not answered
}

// facts asks all. What could not be had is absent, and in the troubles. The kubelet is asked first: that can take a minute, and by then
// what the API server said would be old.
func (i inquiry) facts(ctx context.Context) (facts forecast.Facts, troubles []error) {
	now, then, troubles := i.effective()
	facts.Now, facts.Then = configurationOf(now), configurationOf(then)
	if facts.Now != nil && facts.Then != nil {
		facts.SameRuntime = host.Same(forecast.Socket(facts.Now.ContainerRuntimeEndpoint), forecast.Socket(facts.Then.ContainerRuntimeEndpoint))
		facts.OtherPodHeaders = now.OtherPodHeaders(then)
	}
	ctx, cancel := context.WithTimeout(ctx, configsync.RequestTimeout)
	defer cancel()
	var asked sync.WaitGroup
	var apiErr, hostErr, usesErr error
	var runtime runtimeAnswer
	runtimeAnswered := make(chan struct{})
	var listed podList
	if i.client != nil {
		asked.Go(func() {
			if facts.Node, apiErr = configsync.ReadNode(ctx, i.client, i.nodeName); apiErr == nil { // before the pods, which must not be older
				listed, apiErr = i.nodePods(ctx, facts.Node, func() runtimeAnswer { <-runtimeAnswered; return runtime })
			}
		})
	} else {
		apiErr = i.offline
	}
	if facts.Now != nil && facts.Then != nil && i.client != nil {
		kubelet := i.kubelet(facts.Now)
		asked.Go(func() {
			defer close(runtimeAnswered)
			runtime.sandboxes, runtime.err = host.Sandboxes(ctx, kubelet.RuntimeEndpoint)
		})
		if facts.Host, hostErr = host.Look(ctx, kubelet); hostErr != nil {
			i.Debug("not all of the host could be measured", zap.Error(hostErr))
		}
		facts.Host.Cgroups, usesErr = host.CgroupUses(facts.Then.LimitedCgroups())
	} else {
		close(runtimeAnswered) // nothing can be foreseen, whatever the runtime and the host say
	}
	var filesErr error
	facts.Manifests, filesErr = manifests(facts.Now, facts.Then)
	asked.Wait()
	switch {
	case errors.Is(runtime.err, host.ErrNoCRI):
		runtime.err = unknowable{runtime.err}
	case runtime.err == nil && errors.Is(hostErr, host.ErrSilent): // what it was asked in addition to its pods
		runtime.err = fmt.Errorf("the file system of the images: %w", host.ErrSilent)
	}
	facts.Pods, facts.Sandboxes = listed.pods, listed.lasting(runtime.sandboxes)
	for _, err := range []error{apiErr, runtime.err, filesErr, usesErr} {
		if err != nil {
			troubles = append(troubles, err)
		}
	}
	return facts, troubles
}

// manifests are the files of static pods of these configurations, by their folders.
func manifests(of ...*forecast.Configuration) (map[string][]forecast.Manifest, error) {
	all := map[string][]forecast.Manifest{}
	for _, c := range of {
		if c == nil || c.StaticPodPath == "" {
			continue
		}
		list, err := host.Manifests(c.StaticPodFolder())
		if err != nil {
			return nil, err
		}
		all[c.StaticPodFolder()] = list
	}
	return all, nil
}

// configurationOf is nil where the kubelet has not told it: our own reading lacks the defaults.
func configurationOf(e kubeletconfig.Effective) *forecast.Configuration {
	if !e.Told || !e.Known() {
		return nil
	}
	c, err := forecast.DecodeConfiguration(e.JSON())
	if err != nil {
		return nil
	}
	return c
}

// kubelet is where one with this configuration keeps things.
func (i inquiry) kubelet(c *forecast.Configuration) host.Kubelet {
	return host.Kubelet{RootDir: i.rootDir, RuntimeEndpoint: cmp.Or(c.ContainerRuntimeEndpoint, i.runtime), CgroupRoot: c.CgroupRoot,
		CgroupDriver: c.CgroupDriver}
}
