// Package supervisor is the parent of the kubelet: it joins what decides, what runs the kubelet, and what speaks to the API server.
//
// It is the imperative shell of package decide. One goroutine, the loop, owns the state. It tells observers of each
// decision, and has a runner carry out the action, whose result comes back as an event; every other goroutine only brings it events.
//
// A supervisor that was killed leaves its kubelet behind. The next one stops it before it starts its own: it is the process that
// state.json names (pid, start time, boot), or one in /proc of which enough is known to be certain (search.go).
//
// It promises that there is at most one kubelet and always one coming; that nothing is applied before it is durable; that a
// configuration is blamed only where a control run proved the environment sound; and that the Node shows only what was seen.
package supervisor
