// Package document reads, writes and compares the configurations that a command line or a ConfigMap names: whole KubeletConfigurations, and layers over
// each node's own file. It makes no requests.
package document
