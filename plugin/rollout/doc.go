// Package rollout has the commands of "kubectl kubelet rollout", which show and control how a pool's revision
// reaches its nodes.
package rollout
