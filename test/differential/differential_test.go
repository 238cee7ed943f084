package differential

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	program = "KUBELET_SUPERVISOR_TEST_ADMISSION" // the kubelet's admission; its name ends in the kubelet's version

	casesOfOne = 400 // after so many a program is started again: its managers never end
	shown      = 10  // faults that are printed

	// Of the pods that go in each order, these percents have to be certain, by their number and by name: a forecast that doubts everything holds nothing.
	leastHeld, leastNamed = 85, 70
)

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// No loss is missed, and none is said to be certain that does not come. SEED=N tries one case and prints it.
func TestForecastAgainstTheKubelet(t *testing.T) {
	path := os.Getenv(program)
	if path == "" {
		t.Skip(program + " names no program; make test-differential builds one")
	}
	if seed := number(t, "SEED", 0); seed > 0 {
		one(t, path, seed)
		return
	}
	r := run{path: path, cases: number(t, "DIFFERENTIAL", 1500)}
	var workers sync.WaitGroup
	for range max(runtime.NumCPU(), 1) {
		workers.Go(func() { r.work(t) })
	}
	workers.Wait()
	t.Logf("%d cases, of which %d are of nodes that lose pods: %d losses, %d of them certain; %d cases are of no kubelet", r.cases, r.harmful.Load(), r.losses.Load(), r.certain.Load(), r.refused.Load())
	t.Logf("%d pods go in each order that was tried, and %d of them hold the change; %d losses are certain by name", r.least.Load(), r.held.Load(), r.named.Load())
	if 100*r.held.Load() < leastHeld*r.least.Load() || 100*r.named.Load() < leastNamed*r.least.Load() {
		t.Errorf("of the pods that go in each order, less than %d %% hold the change, or less than %d %% are certain by name", leastHeld, leastNamed)
	}
	if r.harmful.Load() < r.cases/10 || r.refused.Load() > r.cases/4 {
		t.Error("too few of these cases show something")
	}
}

type run struct {
	path                              string
	cases                             uint64
	next, faults                      atomic.Uint64
	harmful, losses, certain, refused atomic.Uint64
	least, held, named                atomic.Uint64 // losses that came in each order; how many of them are certain, and losses that are so by name
}

func (r *run) work(t *testing.T) {
	var k *admission
	for count := 0; ; count++ {
		seed := r.next.Add(1)
		if seed > r.cases || r.faults.Load() > shown {
			break
		}
		if count%casesOfOne == 0 {
			k.close()
			if k = begin(t, r.path); k == nil {
				return
			}
		}
		if !r.try(t, k, seed) {
			break
		}
	}
	k.close()
}

func (r *run) try(t *testing.T, k *admission, seed uint64) bool {
	c := Make(seed, k.version)
	result, err := k.ask(c)
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return false
	}
	if result.Refused != "" {
		r.refused.Add(1)
		return true
	}
	f, faults := judge(c, result, blind(seed, c))
	least := c.least(result)
	r.least.Add(uint64(least))
	r.held.Add(uint64(min(f.Harm(), least)))
	if len(faults) > 0 && r.faults.Add(1) <= shown {
		t.Errorf("SEED=%d: %s", seed, faults[0])
	}
	if count := len(f.Losses) + len(f.Static) + len(f.Anyway); count > 0 {
		r.harmful.Add(1)
		r.losses.Add(uint64(count))
		r.certain.Add(uint64(f.Harm()))
		for _, l := range f.Lost() {
			if l.Certain {
				r.named.Add(1)
			}
		}
	}
	return true
}

// blind nodes do not tell of their CPUs. Then a machine that changed cannot be known.
func blind(seed uint64, c Case) bool { return seed%10 == 0 && reflect.DeepEqual(c.Later, c.Machine) }

func one(t *testing.T, path string, seed uint64) {
	k := begin(t, path)
	if k == nil {
		return
	}
	defer k.close()
	c := Make(seed, k.version)
	r, err := k.ask(c)
	if err != nil {
		t.Fatal(err)
	}
	f, faults := judge(c, r, blind(seed, c))
	t.Logf("%v\nrefused %q\nCPUs %s\nmemory %s\nrunning %v", c, r.Refused, r.CPUState, r.MemoryState, r.Running)
	for _, restart := range r.Restarts {
		t.Logf("then=%t order=%v ended=%q lost=%v", restart.Then, c.Orders[restart.Order], restart.Ended, restart.Lost)
	}
	t.Logf("%s\nmissing %v\ndoubts %v\nlosses %+v\nstatic %+v\nanyway %+v", f.Sentence(9), f.Missing, f.Doubts, f.Losses, f.Static, f.Anyway)
	if r.Refused == "" {
		for _, fault := range faults {
			t.Error(fault)
		}
	}
}

// An admission is the kubelet's, in a process.
type admission struct {
	version string
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

func begin(t *testing.T, path string) *admission {
	t.Helper()
	_, version, _ := strings.Cut(filepath.Base(path), "-")
	k := &admission{version: "v" + version, command: exec.Command(path)}
	k.command.Stderr = os.Stderr
	out, err := k.command.StdoutPipe()
	if err == nil {
		k.in, err = k.command.StdinPipe()
	}
	if err == nil {
		err = k.command.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	k.out = bufio.NewReaderSize(out, 1<<20)
	return k
}

func (k *admission) ask(c Case) (r Result, err error) {
	text, err := json.Marshal(c)
	if err != nil {
		return r, err
	}
	if _, err := k.in.Write(append(text, '\n')); err != nil {
		return r, fmt.Errorf("asking the kubelet's admission: %w", err)
	}
	line, err := k.out.ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("the kubelet's admission ends: %w", errors.Join(err, k.command.Wait()))
	}
	return r, json.Unmarshal(line, &r)
}

func (k *admission) close() {
	if k == nil {
		return
	}
	_ = k.in.Close()
	_ = k.command.Wait()
}
