package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// hostVariable names the file with the order of a program that is a host.
const hostVariable = "KUBELET_SUPERVISOR_SCALE_HOST"

// A hostOrder is what a host runs.
type hostOrder struct {
	Nodes       []node
	FakeKubelet string
	Spread      time.Duration
	Trial       time.Duration
}

// IsHost tells a program that is to call Host, and end when that returns.
func IsHost() bool { return os.Getenv(hostVariable) != "" }

// Host runs many supervisors in this process, until ctx ends.
func Host(ctx context.Context) error {
	debug.SetGCPercent(50) // as the shipped program does
	content, err := os.ReadFile(os.Getenv(hostVariable))
	if err != nil {
		return fmt.Errorf("reading what to host: %w", err)
	}
	var order hostOrder
	if err := json.Unmarshal(content, &order); err != nil {
		return fmt.Errorf("reading what to host: %w", err)
	}
	if err := allowFiles(len(order.Nodes)); err != nil {
		return err
	}
	var running sync.WaitGroup
	failures := make([]error, len(order.Nodes))
	for i, n := range order.Nodes {
		running.Go(func() {
			if err := hostOne(ctx, order, n); err != nil {
				failures[i] = fmt.Errorf("node %s: %w", n.Name, err)
			}
		})
		pause(ctx, startEvery)
	}
	running.Wait()
	return errors.Join(failures...)
}

func hostOne(ctx context.Context, order hostOrder, n node) error {
	log, err := os.OpenFile(n.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	encoder := zap.NewProductionEncoderConfig()
	return supervisor.Run(ctx, supervisor.Options{
		Kubelet: order.FakeKubelet, Arguments: n.kubelet(), StateDir: n.path("state"), RunDir: n.path("run"),
		Settings:   decide.Settings{TrialPeriod: order.Trial, TrialFailures: 3, StartTimeout: 2 * time.Minute, EditSpread: order.Spread},
		Namespaces: []string{configNamespace}, StopTimeout: 30 * time.Second,
		Preflight: "never", // as many at once on one machine would only run into its time limit
		Logger:    zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoder), zapcore.AddSync(log), zap.InfoLevel)), Output: log,
	})
}

// startHost starts a host of all nodes' supervisors.
func startHost(c *cluster.Cluster, o Options, nodes []node, spread time.Duration) (*cluster.Program, error) {
	order, err := json.Marshal(hostOrder{Nodes: nodes, FakeKubelet: o.FakeKubelet, Spread: spread, Trial: o.Trial})
	if err != nil {
		return nil, err
	}
	file := c.Folder + "/host.json"
	if err := os.WriteFile(file, order, 0o600); err != nil {
		return nil, err
	}
	command := c.Command(o.Host[0], o.Host[1:]...)
	command.Env = append(os.Environ(), hostVariable+"="+file)
	return cluster.Start(command, c.Folder+"/log/host.log")
}
