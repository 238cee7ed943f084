//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	hugePagesFile = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
	hugePod       = "huge-pages" // has some, and uses none, so that they can be taken from the machine under it
	morePages     = 8
	roomWithin    = time.Minute
)

// hugePages are those that the soak adds to the machine, for a pod that asks for some. A kubelet counts them when it starts: one that is started
// while they are away ends the pod.
type hugePages struct {
	before int  // on the machine
	there  bool // the soak may change them
}

// addHugePages adds them, and their pod. A machine that has no room for them has a soak without.
func (s *soaker) addHugePages() error {
	if !s.HugePages {
		return nil
	}
	before, err := readHugePages()
	if err != nil {
		return err
	}
	s.pages.before = before
	if err := s.setHugePages(before + morePages); err != nil {
		return err
	}
	now, err := readHugePages()
	if err != nil {
		return err
	}
	if now < before+morePages {
		_, _ = fmt.Fprintf(s.Log, "the machine has no room for %d huge pages: there is no pod with some\n", morePages)
		return s.setHugePages(before)
	}
	s.pages.there, s.plan.world.hugePages = true, true
	workloads[hugePod] = workload{requests: `{"cpu": "10m", "memory": "16Mi", "hugepages-2Mi": "4Mi"}`, limits: `{"memory": "16Mi", "hugepages-2Mi": "4Mi"}`}
	return nil
}

// removeHugePages leaves the machine as it was.
func (s *soaker) removeHugePages() error {
	if !s.pages.there {
		return nil
	}
	delete(workloads, hugePod)
	return s.setHugePages(s.pages.before)
}

// changeHugePages takes them from the machine, or gives them back. A machine whose memory somebody else has taken meanwhile cannot give them
// back at once, and then it is not the node that ends their pod.
func (s *soaker) changeHugePages(ctx context.Context, h harm) error {
	if h != mended {
		return s.setHugePages(s.pages.before)
	}
	return await(ctx, roomWithin, "the machine has room for its huge pages again", func() error {
		if err := s.setHugePages(s.pages.before + morePages); err != nil {
			return err
		}
		now, err := readHugePages()
		if err == nil && now < s.pages.before+morePages {
			err = fmt.Errorf("it has %d of %d", now, s.pages.before+morePages)
		}
		return err
	})
}

func (s *soaker) setHugePages(count int) error {
	if err := os.WriteFile(hugePagesFile, []byte(strconv.Itoa(count)), 0o644); err != nil {
		return fmt.Errorf("setting the number of huge pages: %w", err)
	}
	return nil
}

func readHugePages() (int, error) {
	text, err := os.ReadFile(hugePagesFile)
	if err != nil {
		return 0, fmt.Errorf("reading the number of huge pages (-huge=false for a soak without): %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// hugePodMayEnd: a kubelet may have been started while its pages were away, and not by our choice: it was killed, or what it ran was rolled back.
func hugePodMayEnd(steps []step) bool {
	taken := slices.ContainsFunc(steps, func(s step) bool { return s.harm == taken })
	return taken && slices.ContainsFunc(steps, func(s step) bool {
		return s.strikes() || s.supervisor != "" && s.supervisor != "HUP" || s.payload.quality == deadly || s.payload.quality == refused || s.retry
	})
}

// countPages lets the kubelet count the pages anew, which it does when it starts. That is asked for by nobody, and counts nothing.
func (s *soaker) countPages(ctx context.Context) error {
	before := s.node.processTable().kubelets()
	s.starts++ // one more than the round's own
	s.signalKubelet("TERM")
	return await(ctx, healthyWithin, "the kubelet that counts the huge pages", func() error {
		if now := s.node.processTable().kubelets(); len(now) != 1 || slices.Equal(now, before) {
			return fmt.Errorf("the kubelets are %v", now)
		}
		return s.checkHealthy(ctx)
	})
}
