// Package kubeletlog reads what a kubelet writes to its log: the error that it ended with, as one line that can be shown to people.
package kubeletlog
