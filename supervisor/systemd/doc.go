// Package systemd speaks to the services of systemd: to the manager that started us and its watchdog (sd_notify), to
// logind about the host's shutdown, and to journald.
package systemd
