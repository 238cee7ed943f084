#!/bin/sh
docker rm -f kubelet >/dev/null 2>&1 || true
exec docker run --name kubelet --net=host --pid=host --privileged \
	-v /:/rootfs:ro -v /var/lib/kubelet:/var/lib/kubelet:shared \
	registry.example/hyperkube:v1.16.0 kubelet "$@"
