//go:build linux

package kubelet

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// An exit that was collected and is not told yet is not lost: the program is not replaced before.
func TestACollectedExitIsToldFirst(t *testing.T) {
	l := NewLauncher(Settings{})
	over := childOf(t, l, nil, "true")
	if _, err := over.collect(); err != nil {
		t.Fatal(err)
	}
	if _, held := l.Hold(over); held {
		t.Error("held while an exit is on its way")
	}
	for _, child := range []*Child{nil, {}} {
		release, held := l.Hold(child)
		if !held {
			t.Fatal("not held")
		}
		release()
	}
}

// What one program knows of the kubelet and of the starts before, the next one knows, too.
func TestHandOver(t *testing.T) {
	before := NewLauncher(Settings{RunDir: t.TempDir()})
	for range 3 {
		before.Delay()
	}
	before.secret = ourSecret
	before.output.began.Store(30)
	before.output.copied.Store(20)
	before.output.given.Store(25)
	before.output.forgotten = 10
	child := childOf(t, before, nil, "sleep", "1000")
	child.endpoints = kubeletconfig.Endpoints{Runtime: "unix:///run/a", HealthzAddress: "127.0.0.1:10248"}
	child.given, child.fallbackRuntime, child.fallbackHealthz = "/run/effective", "unix:///run/b", "127.0.0.1:10249"
	child.started, child.healthy.sum, child.journaled, child.locked = time.Now().Add(-time.Hour), time.Minute, true, true
	child.healthy.since = time.Now().Add(-2 * time.Minute)
	child.notify = listenNotifyUntilTheEnd(t)
	pid := child.Process().PID
	if sleep, err := exec.LookPath("sleep"); err != nil || child.Process().Executable != sleep {
		t.Errorf("it is %+v, and was started as %s (%v)", child.Process(), sleep, err)
	}
	child.notify.inherit(kubeletNotes{PID: pid, Ready: true, Pings: 5})

	handed, err := json.Marshal([]any{before.HandOver(), child.HandOver()})
	if err != nil {
		t.Fatal(err)
	}
	var launcher HandedLauncher
	var kubelet HandedChild
	if err := json.Unmarshal(handed, &[]any{&launcher, &kubelet}); err != nil {
		t.Fatal(err)
	}
	if kubelet.Healthy < 3*time.Minute || kubelet.Healthy > time.Hour {
		t.Errorf("healthy for %s so far", kubelet.Healthy)
	}
	if kubelet.Age < time.Hour || kubelet.Age > 2*time.Hour || !kubelet.Notes.Ready || kubelet.Notes.Pings != 5 {
		t.Errorf("handed over: %+v", kubelet)
	}
	told := kubelet
	told.Age, told.Healthy = 0, 0
	if want := (HandedChild{Process: child.Process(), Endpoints: child.endpoints, Given: child.given, Runtime: child.fallbackRuntime, FallbackHealthz: child.fallbackHealthz,
		Journaled: true, Locked: true, Notes: kubeletNotes{PID: pid, Ready: true, Pings: 5}}); told != want {
		t.Errorf("handed over:\n%+v\nwant\n%+v", told, want)
	}
	after := NewLauncher(before.Settings)
	after.Inherit(launcher, nil)
	after.notify = listenNotifyUntilTheEnd(t)
	inherited, err := after.InheritChild(&kubelet)
	if err != nil {
		t.Fatal(err)
	}
	if now := after.HandOver(); now != launcher || launcher.Secret != ourSecret || launcher.Output != (handedOutput{Began: 30, Copied: 25, Forgotten: 10}) {
		t.Errorf("%+v became %+v", launcher, now)
	}
	if begun := time.Since(inherited.begun); begun < kubelet.Age || begun > 2*time.Hour || inherited.logFrom != 30 || inherited.launcher != after {
		t.Errorf("begun %s ago; its log is from %d", begun, inherited.logFrom)
	}
	now := inherited.HandOver()
	if now.Age < kubelet.Age || now.Age > 2*time.Hour {
		t.Errorf("its age was %s and is %s", kubelet.Age, now.Age)
	}
	if now.Age = kubelet.Age; *now != kubelet {
		t.Errorf("%+v became %+v", kubelet, *now)
	}
	if unheard, err := NewLauncher(Settings{}).InheritChild(&kubelet); err != nil || unheard.HandOver().Notes != (kubeletNotes{}) {
		t.Errorf("without a notify socket: %+v, %v", unheard, err)
	}
	if next, want := after.Delay(), before.Delay(); next != want {
		t.Errorf("the next start waits %s, and waited %s before", next, want)
	}
	for range 100 { // it is bounded, for Inherit counts as far
		after.Delay()
	}
	if failures := after.HandOver().Failures; failures != backoffCount {
		t.Errorf("%d failures in a row", failures)
	}
	after.ResetDelay()
	if failures := after.HandOver().Failures; failures != 0 {
		t.Errorf("%d failures after a reset", failures)
	}
	if _, err := after.InheritChild(&HandedChild{Process: ProcessOf(os.Getppid())}); err == nil || !strings.Contains(err.Error(), "is not this process's child") {
		t.Errorf("a process that is no child: %v", err)
	}
}

// The notify socket is handed over as a file, and a file that is none is closed.
func TestTheNotifySocketIsHandedOver(t *testing.T) {
	before := NewLauncher(Settings{RunDir: t.TempDir()})
	if fd := before.NotifySocket(); fd != -1 {
		t.Errorf("descriptor %d of none", fd)
	}
	before.notify = listenNotifyUntilTheEnd(t)
	copied, err := before.notify.connection.File()
	if err != nil {
		t.Fatal(err)
	}
	if before.NotifySocket() < 0 {
		t.Error("no descriptor")
	}
	after := NewLauncher(Settings{RunDir: t.TempDir()})
	after.Inherit(HandedLauncher{}, copied)
	defer after.Close()
	if after.notify == nil || after.notify.path != after.RunDir+"/notify" || copied.Fd() != ^uintptr(0) {
		t.Errorf("%+v, descriptor %d", after.notify, copied.Fd())
	}
	packets, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	file, err := packets.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	other := NewLauncher(Settings{})
	if other.Inherit(HandedLauncher{}, file); other.notify != nil || file.Fd() != ^uintptr(0) {
		t.Errorf("a socket of another kind: %+v, descriptor %d", other.notify, file.Fd())
	}
	reads, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writes.Close()
	none := NewLauncher(Settings{})
	if none.Inherit(HandedLauncher{}, reads); none.notify != nil || reads.Fd() != ^uintptr(0) {
		t.Errorf("a pipe: %+v, descriptor %d", none.notify, reads.Fd())
	}
}
