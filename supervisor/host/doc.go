// Package host measures the machine as the kubelet will at its start: memory, disks, processes, CPUs, and what the container runtime says.
//
// It is for a forecast (package forecast), so it looks where the kubelet looks and computes as it does: the numbers
// have to agree, and not only to be right. What cannot be measured is missing from what it returns, and its errors say
// why. It only reads.
//
// Here and in package kubelet about a dozen functions of 3 to 8 lines read files of /proc and /sys. prometheus/procfs
// would not make them shorter: it reads whole tables into structs of its own.
package host
