// Package rollout has the commands of "kubectl kubelet rollout": they show how the revision of a pool reaches its nodes, and steer it.
package rollout
