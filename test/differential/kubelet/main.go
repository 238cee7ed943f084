// Command kubelet lets the kubelet's own admission decide over pods: the CPU manager, the memory manager, the topology manager, preemption, the
// predicates, the list of sysctls, declared features and the eviction manager, as Kubernetes has them. It reads cases, one JSON document a line,
// and answers each with one line. Its module is apart, because the product never needs k8s.io/kubernetes.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func main() {
	klog.SetLogger(logr.Discard())
	if err := answer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// tried is run, for a kubelet that panics over its configuration has refused it.
func (c Case) tried() (result Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return c.run()
}

func answer() error {
	in, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var c Case
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			return fmt.Errorf("reading a case: %w", err)
		}
		result, err := c.tried()
		if err != nil {
			result = Result{Refused: err.Error()}
		}
		text, err := json.Marshal(result)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(text, '\n')); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}
