// What this needs of Kubernetes is in the go.mod of one of test/parts, by which build.sh builds it: one for each version of the kubelet.
module github.com/kubelet-supervisor/kubelet-supervisor/test/differential/kubelet

go 1.26.0
