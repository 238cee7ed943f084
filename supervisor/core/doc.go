// Package core is the pure core: which configuration the kubelet should run, and the one thing to do next.
//
// Two functions are all of it. [Decide] takes the state and one event, and gives the next state and at most one blocking action.
// [Report] says what the Node should show of a state. Time comes as a number in the event; due times leave as a number in the step.
//
// It promises that nothing here reads a clock, a disk, the net or a process, and that nothing here starts a goroutine (purity_test.go
// and a linter rule see to that): the same events always give the same decisions, and every row of the behaviour tables is a test.
package core
