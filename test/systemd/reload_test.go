//go:build systemd

package systemd

import (
	"errors"
	"strings"
	"testing"
)

// A program that cannot run is found out before the running one makes way for it.
func TestABrokenNewProgramIsRefused(t *testing.T) {
	for name, spoil := range map[string]string{
		"truncated":      "head -c 1000000 /usr/bin/kubelet-supervisor >/usr/bin/new; chmod +x /usr/bin/new",
		"not to be run":  "cp /usr/bin/kubelet-supervisor /usr/bin/new; chmod -x /usr/bin/new",
		"another script": "printf '#!/bin/sh\\nexit 0\\n' >/usr/bin/new; chmod +x /usr/bin/new",
		"another binary": "cp /usr/bin/true /usr/bin/new",
	} {
		another := strings.HasPrefix(name, "another ")
		t.Run(name, func(t *testing.T) {
			onEachSystemd(t, func(t *testing.T, m *machine) {
				before := m.supervised()
				main := m.property("kubelet", "MainPID")
				good := "cp -p /usr/bin/kubelet-supervisor /usr/bin/good && "
				m.must(good+"{ %s; } && mv /usr/bin/new /usr/bin/kubelet-supervisor", spoil)
				if said, err := m.try("systemctl reload kubelet"); err == nil && !another {
					t.Errorf("the reload succeeded: %s", said)
				}
				m.must("kill -HUP %s", main) // systemctl reload runs the new program, which may say anything
				await(t, "the refusal", func() error {
					if record := m.read("/run/kubelet-supervisor/state.json"); !strings.Contains(record, "reloadFailure") {
						return errors.New(record)
					}
					return nil
				})
				if now := m.property("kubelet", "MainPID"); now != main || m.property("kubelet", "ActiveState") != "active" {
					t.Errorf("the supervisor is %s and not %s", now, main)
				}
				if err := m.only(before); err != nil {
					t.Error(err)
				}
				m.must("mv /usr/bin/good /usr/bin/kubelet-supervisor && systemctl reload kubelet")
				if after := m.healthy("kubelet"); after != before {
					t.Errorf("the kubelet is %s and not %s", after, before)
				}
			})
		})
	}
}

// Type=notify-reload, which systemd has from 253 on, has systemd signal the supervisor and wait for its word. Whoever sets it gets the same
// reloads; before 253 it is passed over.
func TestNotifyReload(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.write("/etc/systemd/system/kubelet.service.d/zzz-type.conf", "[Service]\nType=notify-reload\n")
		m.kubeadm("fake")
		m.join()
		m.must("dpkg -i %s", m.deb("old"))
		m.must("kubelet-supervisor enable --now")
		before := m.healthy("kubelet")
		main := m.property("kubelet", "MainPID")
		if kind := m.property("kubelet", "Type"); strings.HasPrefix(m.must("systemctl --version"), "systemd 252") != (kind == "notify") {
			t.Errorf("Type=%s", kind)
		}
		for range 3 {
			m.must("systemctl reload kubelet")
		}
		m.must("dpkg -i %s", m.deb("new"))
		m.isUpgraded(main, before)
		m.healthy("kubelet")
		m.must("mv /usr/bin/kubelet-supervisor /usr/bin/good && cp /usr/bin/good /usr/bin/new && truncate --size=1M /usr/bin/new && mv /usr/bin/new /usr/bin/kubelet-supervisor")
		if said, err := m.try("systemctl reload kubelet"); err == nil {
			t.Errorf("a reload with a broken program succeeded: %s", said)
		}
		await(t, "the unit to be there again", func() error {
			if state := m.property("kubelet", "ActiveState"); state != "active" {
				return errors.New(state)
			}
			return nil
		})
		if now := m.property("kubelet", "MainPID"); now != main || m.only(before) != nil {
			t.Errorf("the supervisor is %s and not %s, the kubelet: %v", now, main, m.only(before))
		}
	})
}

// What is known goes over to the new version: the trial under way, with the healthy time so far, and how the kubelet ends later on.
func TestAnUpgradeInTheMiddleOfATrial(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.supervised()
		m.must("systemctl stop kubelet")
		m.assign("maxPods: 99\n")
		m.must("systemctl start kubelet")
		kubeletPID := m.healthy("kubelet")
		main := m.property("kubelet", "MainPID")
		before, err := m.status()
		if err != nil || before.Trial == nil {
			t.Fatalf("%v %s", err, before.text)
		}
		m.must("dpkg -i %s", m.deb("new"))
		m.isUpgraded(main, kubeletPID)
		after, err := m.status()
		if err != nil || after.Trial == nil || after.Trial.Failures != 0 || after.Trial.Left.Duration > before.Trial.Left.Duration {
			t.Errorf("%v, the trial was %+v and is %+v", err, before.Trial, after.Trial)
		}
		m.must("kill -KILL %s", kubeletPID)
		m.healthy("kubelet")
		if said := m.must("kubelet-supervisor status"); !strings.Contains(said, "killed") {
			t.Errorf("how the kubelet ended was not seen:\n%s", said)
		}
	})
}

// A run folder of the administrator's, in flags.env, is found by reloads and by upgrades of the package.
func TestReloadWithAnotherRunFolder(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.joined()
		m.must("dpkg -i %s", m.deb("old"))
		m.write("/etc/kubelet-supervisor/flags.env", "KUBELET_SUPERVISOR_ARGS=--trial-period 30m --run-dir=/run/elsewhere --follow-local\n")
		m.must("kubelet-supervisor enable --now")
		await(t, "the kubelet", func() error { _, err := m.try("kubelet-supervisor status --run-dir=/run/elsewhere"); return err })
		main := m.property("kubelet", "MainPID")
		m.must("systemctl reload kubelet")
		m.must("dpkg --force-confold -i %s", m.deb("new")) // flags.env was edited
		if said := m.must("kubelet-supervisor status --run-dir=/run/elsewhere -o json"); !strings.Contains(said, newVersion) {
			t.Errorf("the upgrade did not take: %s", said)
		}
		if now := m.property("kubelet", "MainPID"); now != main {
			t.Errorf("the supervisor is %s and not %s", now, main)
		}
	})
}
