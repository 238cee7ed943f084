// Package cluster brings up a real Kubernetes cluster of one node on this machine, for tests and for the demo: etcd,
// kube-apiserver (Node and RBAC authorization, NodeRestriction), containerd and runc, all in a network namespace made for
// it. The kubelet is not started: that is the caller's, with KubeletArguments and Command.
//
// It promises to leave nothing behind: Down stops every process in the namespace (also those that the caller started there)
// and removes mounts, cgroups, the namespace and the folder, and restores the sysctls that a kubelet sets and the limit of
// inotify instances that Up raises. What a run that was killed left is removed by the next Up, or by Clean. Clusters of
// different names do not meet, so several can be up at once. It needs root, and handles cgroup v1, hybrid and v2.
// It is neither envtest, which starts etcd and kube-apiserver alone, nor e2e-framework, whose nodes are kind's containers.
//
// Everything listens on the usual ports, but inside the namespace only: Dial, AdminConfig and KubeletHTTP go into it.
package cluster
