// Package machine tests on virtual machines of their own what no container can show: reboots, sleep, a clock that is set, power cuts, all
// controllers of a pure cgroup v2, NUMA nodes, SELinux that enforces. Only with the build tag machine; make test-machine says what it needs.
//
// A machine is QEMU's, without KVM, so that it runs everywhere. A node among them has Debian's kernel and systemd, containerd, the real
// kubelet and the installed package; etcd and kube-apiserver run outside, in the network namespace of a cluster of package cluster, which
// the machine's network reaches. A bare one has a first process, supervisor and fake kubelet, for many power cuts.
//
// A machine that loses its power again and again goes on from a snapshot of its memory, which was taken before its kernel knew of a disk.
package machine
