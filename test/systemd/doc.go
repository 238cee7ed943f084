// Package systemd tests the packages on throw-away machines with a real systemd: installed by dpkg and rpm, driven by systemctl, seen
// by journalctl. Only with the build tag systemd; make test-systemd says what it needs.
package systemd
