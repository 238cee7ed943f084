// Package commandline reads a kubelet's command line: what a supervisor has to know of it, and the fields of a KubeletConfiguration
// that its flags set. It runs nothing and reads no file.
package commandline
