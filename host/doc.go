// Package host measures the machine as the kubelet will at its start: memory, disks, processes, CPUs, and what the container runtime says.
//
// It is for a forecast (package forecast), so it looks where the kubelet looks and computes as it does: the numbers
// have to agree, and not only to be right. What cannot be measured is missing from what it returns, and its errors say
// why. It only reads.
package host
