// Package supervisor is the parent of the kubelet: it decides which configuration the kubelet runs and carries the decision out.
//
// It is a functional core in an imperative shell. The core is two pure functions: decide, which takes the state and one event and
// gives the next state and at most one blocking action, and report, which says what the Node should show. The core knows no clock,
// disk, process or API; time comes as a number in the event. The shell (loop.go and the files it names) carries the action out and
// brings its result back as an event. Only one goroutine ever holds the state.
//
// A supervisor that was killed leaves its kubelet behind. The next one stops it before it starts its own: it is the process that
// state.json names (pid, start time, boot), or one in /proc of which enough is known to be certain (search.go).
//
// It promises that there is at most one kubelet and always one coming; that nothing is applied before it is durable; that a
// configuration is blamed only where a control run proved the environment sound; and that the Node is told only what was seen.
package supervisor
