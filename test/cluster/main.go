//go:build linux

package cluster

import (
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

// liveClusters are those that this process has up, for Main.
type liveClusters struct {
	mutex    sync.Mutex
	clusters map[*Cluster]bool
}

var live = liveClusters{clusters: map[*Cluster]bool{}}

func (l *liveClusters) add(c *Cluster) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.clusters[c] = true
}

func (l *liveClusters) remove(c *Cluster) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.clusters, c)
}

func (l *liveClusters) down() {
	l.mutex.Lock()
	clusters := slices.Collect(maps.Keys(l.clusters))
	l.mutex.Unlock()
	for _, c := range clusters {
		if err := c.Down(); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
		}
	}
}

// Main runs m and then takes down every cluster that is still up; on SIGINT, SIGTERM or SIGHUP it does so at once, without
// waiting for m. It returns the exit code: func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }.
func Main(m interface{ Run() int }) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	code := make(chan int, 1)
	go func() { code <- m.Run() }()
	defer live.down()
	select {
	case c := <-code:
		return c
	case s := <-signals:
		_, _ = fmt.Fprintf(os.Stderr, "%s: taking the clusters down\n", s)
		return 130
	}
}
