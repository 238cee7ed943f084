package forecast

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A CPUState is what the file cpu_manager_state says.
type CPUState struct {
	Policy  string // that wrote it; "": there is no file
	Shared  []int  // CPUs that no container has alone
	Entries map[string]map[string][]int
}

// DecodeCPUState reads the file, of any kubelet: from 1.37 on, what counts is in the string "data", itself JSON.
func DecodeCPUState(text []byte) (*CPUState, error) {
	type document struct {
		Policy  string                       `json:"policyName"`
		Shared  string                       `json:"defaultCpuSet"`
		Entries map[string]map[string]string `json:"entries"`
	}
	var outer struct {
		document
		Data string `json:"data"`
	}
	if err := json.Unmarshal(text, &outer); err != nil {
		return nil, fmt.Errorf("reading the CPU manager's state: %w", err)
	}
	d := outer.document
	if outer.Data != "" {
		d = document{}
		if err := json.Unmarshal([]byte(outer.Data), &d); err != nil {
			return nil, fmt.Errorf("reading the CPU manager's state: %w", err)
		}
	}
	state := &CPUState{Policy: d.Policy, Entries: map[string]map[string][]int{}}
	var err error
	if state.Shared, err = parseCPUs(d.Shared); err != nil {
		return nil, fmt.Errorf("reading the CPU manager's state: %w", err)
	}
	for pod, containers := range d.Entries {
		state.Entries[pod] = map[string][]int{}
		for container, text := range containers {
			if state.Entries[pod][container], err = parseCPUs(text); err != nil {
				return nil, fmt.Errorf("reading the CPU manager's state: %w", err)
			}
		}
	}
	return state, nil
}

const mostCPUs = 1 << 16 // of a list; no machine has so many

// parseCPUs reads a list of CPUs as 0-2,7. It is sorted and has none twice.
func parseCPUs(text string) ([]int, error) {
	var cpus []int
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		first, last, is := strings.Cut(part, "-")
		if !is {
			last = first
		}
		from, err := strconv.Atoi(strings.TrimSpace(first))
		to, err2 := strconv.Atoi(strings.TrimSpace(last))
		if err != nil || err2 != nil || to < from || to >= mostCPUs || len(cpus) > mostCPUs {
			return nil, fmt.Errorf("%q is no list of CPUs", text)
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}
