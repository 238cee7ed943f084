//go:build machine

package machine

import (
	"fmt"
	"testing"
	"time"
)

// A machine that sleeps in a trial: time asleep is no running time, so nothing is promoted by it, and nobody renewed a Lease or answered a
// question meanwhile, so nothing is blamed for it (rule 7).
func TestAMachineThatSleepsInATrial(t *testing.T) {
	const (
		trial  = 4 * time.Minute
		asleep = 100 * time.Second // longer than a Lease may be without a renewal
	)
	n := runningNode(t, "-machine", "hpet=on") // without one no timer ticks after the sleep, and the machine stands still
	n.restartWith("--trial-period=" + trial.String())
	assignment := n.configMap(t, "sleep", withPods(55))
	n.assign(t, assignment)
	n.says(t, assignment, "InTrial")
	s := n.runs(55)
	kubelet, clocks := s.Child.PID, n.clocks()
	begin := time.Now()
	n.sleep(asleep)
	grown := n.clocks()
	if slept := (grown.boot - grown.monotonic) - (clocks.boot - clocks.monotonic); slept < asleep-5*time.Second {
		t.Fatalf("CLOCK_BOOTTIME has gone on for %s more than CLOCK_MONOTONIC: the machine did not sleep for %s", slept, asleep)
	}
	// At once, and for as long as a Lease needs to look lost, the trial goes on with the same kubelet.
	for woken := time.Now(); time.Since(woken) < 80*time.Second; {
		now, err := n.status()
		if err != nil {
			t.Fatal(err)
		}
		awake := grown.monotonic - clocks.monotonic + time.Since(woken) + s.Trial.Healthy.Duration
		if now.Child == nil || now.Child.PID != kubelet || now.Trial == nil || now.Trial.Failures != s.Trial.Failures ||
			now.Trial.Healthy.Duration > awake+10*time.Second {
			t.Fatalf("%s after it has begun to sleep, awake for %s: %s", time.Since(begin), awake, now.text)
		}
		<-time.After(time.Second)
	}
	n.says(t, assignment, "Active")
}

// sleep puts the machine to sleep (S3) for so long.
func (n *node) sleep(duration time.Duration) {
	n.machine.Helper()
	n.must("systemd-run --no-block --unit=sleeps sh -c 'sleep 1; echo mem >/sys/power/state; echo slept'")
	if err := n.monitor.await("SUSPEND"); err != nil {
		n.Fatal(err)
	}
	n.wake(duration)
}

func (n *node) wake(after time.Duration) {
	n.machine.Helper()
	<-time.After(after) // it is another machine's sleep, which no clock of ours makes shorter
	if err := n.monitor.ask("system_wakeup"); err != nil {
		n.Fatal(err)
	}
	await(n.T, "a machine that is awake", func() error {
		_, err := n.try("journalctl --unit=sleeps --output=cat | grep -q slept")
		return err
	})
}

type clocks struct{ boot, monotonic time.Duration }

// clocks are CLOCK_BOOTTIME and CLOCK_MONOTONIC of the machine.
func (n *node) clocks() (c clocks) {
	n.machine.Helper()
	said := n.must("cut -d' ' -f1 /proc/uptime; sed -n 's/^now at \\([0-9]*\\) nsecs$/\\1/p' /proc/timer_list")
	var uptime float64
	if _, err := fmt.Sscan(said, &uptime, &c.monotonic); err != nil {
		n.Fatalf("%q: %v", said, err)
	}
	c.boot = time.Duration(uptime * float64(time.Second))
	return c
}
