// Package view reads what Nodes, pools, their revisions and kubelets report, and formats it for people: as lines,
// cells and tables of printable text. It changes nothing.
package view
