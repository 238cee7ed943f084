// Package v1 is the Node contract: what users and programs write on a Node for its supervisor, and what the supervisor writes there for them. The
// node's program, the controller and the plugin all import it, and sync reads the annotations that it follows. What the node does not read is elsewhere: the record of assignments in plugin/view, the marks of
// pools in fleet/rollout.
//
// It uses no client, no clock and no disk. A value from a hostile node or user is decoded within bounds, or is an error.
package v1
