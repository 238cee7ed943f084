//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	kubeletInterval = 15 * time.Millisecond // a look takes about 2 ms
	nodeInterval    = 250 * time.Millisecond
	mostWaiting     = 45 * time.Second // the one that runs has 30 s to end
	mostWithout     = 30 * time.Second // without a kubelet while a supervisor runs: the longest backoff is 10 s
)

// An observer looks at the process table and at the Node all the time, and tells fail of what must not be.
type observer struct {
	node    *node
	service *service
	fail    func(error)

	mutex   sync.Mutex // guards what follows
	looks   int
	seen    map[int]bool // pids of kubelets
	without time.Duration
	written int // states of the Node
	last    view
}

func newObserver(n *node, s *service, fail func(error)) *observer {
	return &observer{node: n, service: s, fail: fail, seen: map[int]bool{}}
}

// watch looks until ctx ends; the function waits for that.
func (o *observer) watch(ctx context.Context) (wait func()) {
	var group sync.WaitGroup
	group.Go(func() { o.watchKubelets(ctx) })
	group.Go(func() { o.watchNode(ctx) })
	return group.Wait
}

func (o *observer) watchKubelets(ctx context.Context) {
	table := o.node.processTable()
	ticker := time.NewTicker(kubeletInterval)
	defer ticker.Stop()
	since := time.Now()          // when there was a kubelet last, or no supervisor that could start one
	waits := map[int]time.Time{} // since when a kubelet waits
	for {
		kubelets := table.kubelets()
		if len(kubelets) > 1 {
			o.fail(fmt.Errorf("two kubelets at a time: %v; the supervisor is %d", kubelets, o.service.pid()))
			return
		}
		if pid := forgotten(waits, table.waiting); pid != 0 {
			o.fail(fmt.Errorf("kubelet %d waits for longer than %s; the supervisor is %d", pid, mostWaiting, o.service.pid()))
			return
		}
		if len(kubelets) > 0 || !o.service.able() {
			since = time.Now()
		}
		o.note(kubelets, time.Since(since))
		if time.Since(since) > mostWithout {
			o.fail(fmt.Errorf("no kubelet for %s while a supervisor ran (pid %d)", mostWithout, o.service.pid()))
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// forgotten gives one that waits for too long; 0 = none does.
func forgotten(since map[int]time.Time, waiting []int) int {
	for pid := range since {
		if !slices.Contains(waiting, pid) {
			delete(since, pid)
		}
	}
	for _, pid := range waiting {
		if _, known := since[pid]; !known {
			since[pid] = time.Now()
		}
		if time.Since(since[pid]) > mostWaiting {
			return pid
		}
	}
	return 0
}

func (o *observer) note(kubelets []int, without time.Duration) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.looks++
	o.without = max(o.without, without)
	for _, pid := range kubelets {
		o.seen[pid] = true
	}
}

func (o *observer) watchNode(ctx context.Context) {
	ticker := time.NewTicker(nodeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		v, err := o.node.view(ctx)
		if err != nil {
			continue // the API server is away, or the Node not yet there: the quiescent moments insist on both
		}
		if broken := v.broken(); broken != "" {
			o.fail(fmt.Errorf("the Node breaks a rule: %s: %s", broken, v.text))
			return
		}
		o.mutex.Lock()
		if v.observed != o.last.observed || v.condition != o.last.condition || v.truth != o.last.truth {
			o.written++
		}
		o.last = v
		o.mutex.Unlock()
	}
}

// broken tells what the Node must never say, whatever goes on; "" when it says nothing of the kind.
func (v view) broken() string {
	c := v.condition
	errors, particular := errorsOf[c.Reason]
	switch {
	case v.lastKnownGood.quality == refused || v.lastKnownGood.quality == deadly:
		return "lastKnownGood is a configuration that cannot run"
	case v.active.quality == refused:
		return "active is a configuration that was refused"
	case particular && !fits(v.config.Error, errors):
		return fmt.Sprintf("the error %q does not belong to the reason %s", v.config.Error, c.Reason)
	case c.Status == "True" && v.active != v.assigned || c.Reason == "Active" && v.lastKnownGood != v.assigned:
		return "all is well, and yet the pointers differ"
	case (c.Status == "True") != slices.Contains([]string{"Local", "InTrial", "Active"}, c.Reason):
		return fmt.Sprintf("the reason %s with status %s", c.Reason, c.Status)
	case v.status.Reason != c.Reason || v.status.Observed != v.observed:
		return fmt.Sprintf("the status says %s of %q to programs, and %s of %q to people", v.status.Reason, v.status.Observed, c.Reason, v.observed)
	case c.Reason == "WouldDisrupt" && (v.status.Hold == nil || v.status.Hold.Approval == "") && !strings.Contains(c.Message, " was spent"): // which is asked for anew
		return "something is held, and no approval lets it through"
	case len(c.Message) > 1024 || !utf8.ValidString(c.Message) || strings.ContainsAny(c.Message, "\r\n"):
		return "the message is longer than 1,024 bytes, or no UTF-8, or no line"
	}
	return ""
}

// A processTable finds the kubelets of one cluster among all processes.
type processTable struct {
	proc    string
	program string
	rootDir string
	others  map[int]int // looks for which a process has been known to be no kubelet
	waiting []int       // of the newest look: kubelets that wait for another to end
}

// Looks after which a process is taken to stay what it is: from fork to exec is less.
const settledAfter = 200

func newProcessTable(program, rootDir string) *processTable {
	return &processTable{proc: "/proc", program: program, rootDir: rootDir, others: map[int]int{}}
}

// processTable finds the kubelets of this node.
func (n *node) processTable() *processTable {
	return newProcessTable(n.Kubelet(), filepath.Join(n.Folder, "kubelet"))
}

// kubelets are the processes that run as this node's kubelet at one and the same time, whoever started them. One that waits at the lock of
// another is none.
func (t *processTable) kubelets() []int {
	folder, err := os.Open(t.proc)
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	t.waiting = nil
	others, found := map[int]int{}, []int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		looks := t.others[pid]
		if looks < settledAfter && t.isKubelet(pid) {
			found = append(found, pid)
			continue
		}
		others[pid] = looks + 1
	}
	t.others = others
	if len(found) < 2 {
		return found
	}
	// What a kubelet forks has the kubelet's arguments until it becomes another program.
	own := slices.DeleteFunc(slices.Clone(found), func(pid int) bool { return slices.Contains(found, t.parentOf(pid)) })
	// They were not looked at at once. Those that are still there now were there when the last was found.
	own = slices.DeleteFunc(own, func(pid int) bool { return !t.isKubelet(pid) })
	if len(own) < 2 {
		return own
	}
	own = slices.DeleteFunc(own, func(pid int) bool {
		waits := t.waits(pid)
		if waits {
			t.waiting = append(t.waiting, pid)
		}
		return waits
	})
	// One that ended meanwhile has let another through; one that is still there had the lock all the while.
	return slices.DeleteFunc(own, func(pid int) bool { return !t.isKubelet(pid) })
}

// waits tells of a kubelet with a lock file that it does not hold it: it has touched nothing of the node.
func (t *processTable) waits(pid int) bool {
	process := filepath.Join(t.proc, strconv.Itoa(pid))
	line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
	const flag = "--lock-file="
	words := strings.Split(string(line), "\x00")
	at := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, flag+"/") })
	if at < 0 {
		return false
	}
	path := strings.TrimPrefix(words[at], flag)
	files, _ := filepath.Glob(filepath.Join(process, "fd", "*"))
	for _, file := range files {
		target, _ := os.Readlink(file)
		info, _ := os.ReadFile(filepath.Join(process, "fdinfo", filepath.Base(file)))
		if strings.TrimSuffix(target, " (deleted)") == path && strings.Contains(string(info), "FLOCK") {
			return false
		}
	}
	return true
}

// parentOf is 0 for a process that has ended.
func (t *processTable) parentOf(pid int) int {
	status, _ := os.ReadFile(filepath.Join(t.proc, strconv.Itoa(pid), "status"))
	return numberIn(status, "PPid:")
}

// isKubelet: a pre-flight has the kubelet's arguments and one of its own; the supervisor has them behind --. What has ended has none.
func (t *processTable) isKubelet(pid int) bool {
	content, _ := os.ReadFile(filepath.Join(t.proc, strconv.Itoa(pid), "cmdline"))
	words := bytes.Split(bytes.TrimSuffix(content, []byte{0}), []byte{0})
	has := func(word string) bool {
		return slices.ContainsFunc(words, func(w []byte) bool { return string(w) == word })
	}
	return string(words[0]) == t.program && has("--root-dir="+t.rootDir) && !has("--exit-on-lock-contention=true")
}
