// Package plugin is `kubectl kubelet`: what an operator does with kubelet configurations, each step one command.
//
// It promises:
//
//   - Nothing is changed that was not shown and agreed to, by an answer or by --yes; --dry-run changes nothing.
//   - It waits for what the Node reports, not for a fixed time: a command that succeeds has seen what it prints, one that fails ends
//     with the node's message, a remedy, and exit code 1.
//   - Nodes are trusted with what they say about themselves, as a report, and with nothing else. A rollback goes by what this
//     plugin recorded in a namespace where nodes cannot write, and never by what a Node says. No text from outside
//     reaches a terminal unescaped (view/printable.go), and what the field table calls secret is masked.
//   - Permissions are the least that will do: a node may read the ConfigMaps that it is assigned, each by its name.
//
// Everything it does can be done with plain kubectl: the contract is the Node's annotations and condition (docs/reference/contract.md).
package plugin
