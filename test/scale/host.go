package scale

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A hostOrder is what a host is told to do, as one line of JSON.
type hostOrder struct {
	Nodes       []node
	FakeKubelet string
	Spread      time.Duration
	Trial       time.Duration
}

// A hostAnswer is what a host says of itself when it is asked, by an empty line.
type hostAnswer struct{ Goroutines int }

// Host is a process in which the supervisors of many nodes live. It reads an order, and ends when there is nothing more to be read: then
// it stops them all, as SIGTERM would.
func Host(ctx context.Context, in io.Reader, out io.Writer) error {
	debug.SetGCPercent(50) // as the shipped program does
	orders := bufio.NewReader(in)
	line, err := orders.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading what to host: %w", err)
	}
	var order hostOrder
	if err := json.Unmarshal(line, &order); err != nil {
		return fmt.Errorf("reading what to host: %w", err)
	}
	if err := allowFiles(len(order.Nodes)); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- hostAll(ctx, order) }()
	for {
		if _, err := orders.ReadBytes('\n'); err != nil {
			break
		}
		answer, err := json.Marshal(hostAnswer{Goroutines: runtime.NumGoroutine()})
		if err != nil {
			return err
		}
		if _, err := out.Write(append(answer, '\n')); err != nil {
			return err
		}
	}
	stop()
	return <-ended
}

// hostAll runs the supervisors until ctx ends.
func hostAll(ctx context.Context, order hostOrder) error {
	var running sync.WaitGroup
	failures := make(chan error, len(order.Nodes))
	for _, n := range order.Nodes {
		running.Go(func() {
			if err := hostOne(ctx, order, n); err != nil {
				failures <- fmt.Errorf("node %s: %w", n.Name, err)
			}
		})
		pause(ctx, startEvery)
	}
	running.Wait()
	close(failures)
	var failed error
	for err := range failures {
		failed = errors.Join(failed, err)
	}
	return failed
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
		Namespaces: []string{configNamespace}, StopTimeout: 30 * time.Second, Preflight: "never", // as many at once on one machine would only run into its time limit
		Logger: zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoder), zapcore.AddSync(log), zap.InfoLevel)), Output: log,
	})
}

// host is the other end: the process that hosts.
type host struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	nodes   int
}

func startHost(c *cluster.Cluster, o Options, nodes []node, spread time.Duration) (supervisors, error) {
	h := &host{command: c.Command(o.Host[0], o.Host[1:]...), nodes: len(nodes)}
	h.command.Stderr = os.Stderr
	h.command.Env = append(os.Environ(), hostVariable+"=1")
	h.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if h.in, err = h.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := h.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.out = bufio.NewReader(out)
	if err := h.command.Start(); err != nil {
		return nil, fmt.Errorf("starting a host of %d supervisors: %w", len(nodes), err)
	}
	order, err := json.Marshal(hostOrder{Nodes: nodes, FakeKubelet: o.FakeKubelet, Spread: spread, Trial: o.Trial})
	if err == nil {
		_, err = h.in.Write(append(order, '\n'))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ordering a host of %d supervisors: %w", len(nodes), err), h.stop())
	}
	if _, err := h.footprint(); err != nil { // it does not live
		return nil, errors.Join(err, h.stop())
	}
	return h, nil
}

// hostVariable is set where a program is started in order to call Host: for one that cannot be told by its arguments, as a test.
const hostVariable = "KUBELET_SUPERVISOR_SCALE_HOST"

// IsHost tells a program that it was started in order to call Host.
func IsHost() bool { return os.Getenv(hostVariable) != "" }

func (h *host) footprint() (mean Footprint, err error) {
	pid, count := h.command.Process.Pid, float64(h.nodes)
	if _, err := h.in.Write([]byte("\n")); err != nil {
		return mean, fmt.Errorf("asking the host: %w", err)
	}
	line, err := h.out.ReadBytes('\n')
	if err != nil {
		return mean, fmt.Errorf("asking the host: %w", err)
	}
	var answer hostAnswer
	if err := json.Unmarshal(line, &answer); err != nil {
		return mean, fmt.Errorf("reading the host's answer %q: %w", line, err)
	}
	resident, anonymous, err := memoryOf(pid)
	if err != nil {
		return mean, err
	}
	files, err := filesOf(pid)
	return Footprint{Resident: resident / count, Anonymous: anonymous / count, Files: float64(files) / count, Goroutines: float64(answer.Goroutines) / count}, err
}

func (h *host) stop() error {
	deadline := time.AfterFunc(stopWithin, func() { _ = h.command.Process.Kill() })
	defer deadline.Stop()
	if err := errors.Join(h.in.Close(), h.command.Wait()); err != nil {
		return fmt.Errorf("the host of the supervisors ended with: %w", err)
	}
	return nil
}
