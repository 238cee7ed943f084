#!/bin/bash
docker exec etcd etcdctl endpoint health
/usr/bin/kubelet "$@"
