// Package view reads what Nodes, pools, their revisions and kubelets tell, and has it ready for people: as lines, cells and tables that print what does
// show. It changes nothing.
package view
