// Package v1 is the Node contract: what users and programs write on a Node for its supervisor, and what the supervisor writes there for them. The
// node's program, the controller and the plugin all import it, and no other package parses or prints any of it.
//
// It uses no client, no clock and no disk. A value from a hostile node or user is decoded within bounds, or is an error.
package v1
