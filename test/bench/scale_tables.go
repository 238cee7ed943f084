package main

import "fmt"

// ProcessesUpTo is for the page.
func (s *scalePage) ProcessesUpTo() int { return processesUpTo }

// WaveTables are what each wave cost.
func (s *scalePage) WaveTables() (string, error) {
	var names []string
	for _, wave := range []string{waveAssigned, waveEdited, waveSpread, waveOutage} {
		for _, figure := range []string{"requests", "requests in the busiest second", "requests that failed", "processor time of the API server", "processor time of etcd", "share of this machine in use"} {
			names = append(names, wave+": "+figure)
		}
	}
	return s.Table(names...)
}

// SteadyTable is what everything costs while nothing changes.
func (s *scalePage) SteadyTable() (string, error) {
	var names []string
	for _, load := range []string{"nobody", "supervisors, steady", "supervisors and Leases", "all on trial, and Leases"} {
		for _, figure := range []string{"processor time of the API server", "processor time of etcd", "supervisors' requests", "RSS of the API server"} {
			names = append(names, load+": "+figure)
		}
	}
	return s.Table(append(names, "RSS of a supervisor", "anonymous memory of a supervisor", "file descriptors of a supervisor")...)
}

// StartsWords tells whether any kubelet was started that should not have been.
func (s *scalePage) StartsWords() (string, error) {
	total := 0.0
	for _, r := range s.Fleets {
		value, err := s.value(r, "kubelet starts too many")
		if err != nil {
			return "", err
		}
		total += value
	}
	if total == 0 {
		return "No kubelet was started more often than once for each change and each start of its supervisor.", nil
	}
	return fmt.Sprintf("**%g kubelets more were started** than one for each change and each start of a supervisor.", total), nil
}
