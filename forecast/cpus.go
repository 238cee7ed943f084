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
		if err != nil || err2 != nil || from < 0 || to < from || to >= mostCPUs || len(cpus) > mostCPUs {
			return nil, fmt.Errorf("%q is no list of CPUs", text)
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

// A cpuPool is what a static CPU manager has for pods that get CPUs alone.
type cpuPool struct {
	static    bool
	free      int             // CPUs
	has       map[string]bool // pods that have theirs, by the state file
	allHave   bool            // those that run
	certain   bool            // that the file is kept, or is not
	wholeCore bool            // only whole cores are given away
	threads   int             // of a core; 0: not known
}

// poolOf tells what the CPU manager starts with. A state file that it refuses is set aside, and then all pods are given CPUs anew.
func poolOf(c, now *Configuration, h Host, r room) (cpuPool, error) {
	pool := cpuPool{static: c.CPUManagerPolicy == "static", certain: true, wholeCore: c.CPUManagerPolicyOptions["full-pcpus-only"] == "true", threads: h.ThreadsPerCore}
	if !pool.static {
		return pool, nil
	}
	all := int(r.capacity.milliCPU / 1000)
	reserved, err := reservedOf(c)
	if err != nil {
		return pool, err
	}
	count := wholeCPUs(reserved.milliCPU, all)
	pool.free = all - count
	kept := keepsState(c, now, h, all, count)
	switch {
	case kept == yes && h.CPUState == nil:
		pool.allHave = true // the same policy over the same CPUs
	case kept == yes:
		pool.has = map[string]bool{}
		for pod := range h.CPUState.Entries {
			pool.has[pod] = true
		}
		reservedCPUs, _ := reservedSet(c, h, count)
		pool.free = len(without(h.CPUState.Shared, reservedCPUs))
	}
	pool.certain = kept != perhaps
	return pool, nil
}

// wholeCPUs is how many of all CPUs are reserved.
func wholeCPUs(milliCPU int64, all int) int {
	return int(min(milliCPU/1000+min(milliCPU%1000, 1), int64(all)))
}

// keepsState tells whether the kubelet starts with the state file that is there.
func keepsState(c, now *Configuration, h Host, all, reserved int) certainty {
	if h.CPUState == nil {
		same := now.CPUManagerPolicy == c.CPUManagerPolicy && now.ReservedSystemCPUs == c.ReservedSystemCPUs &&
			now.CPUManagerPolicyOptions["strict-cpu-reservation"] == c.CPUManagerPolicyOptions["strict-cpu-reservation"]
		before, err := reservedOf(now)
		switch {
		case now.CPUManagerPolicy != "static":
			return no
		case same && err == nil && wholeCPUs(before.milliCPU, all) == reserved:
			return yes
		}
		return perhaps
	}
	if h.CPUState.Policy != "static" {
		return no
	}
	cpus, told := reservedSet(c, h, reserved)
	if !told {
		return perhaps
	}
	shared := without(cpus, without(cpus, h.CPUState.Shared)) // of the reserved ones
	strict := c.CPUManagerPolicyOptions["strict-cpu-reservation"] == "true"
	known := slices.Clone(h.CPUState.Shared)
	for _, containers := range h.CPUState.Entries {
		for _, own := range containers {
			known = append(known, own...)
		}
	}
	slices.Sort(known)
	total := len(slices.Compact(known)) // an init container's are used again
	if strict {
		total += len(cpus)
	}
	if total != all || strict && len(shared) > 0 || !strict && len(shared) < len(cpus) {
		return no
	}
	return yes
}

// reservedSet is which CPUs are reserved. Where only their number is given, the kubelet takes cores from the lowest on.
func reservedSet(c *Configuration, h Host, count int) (cpus []int, known bool) {
	if c.ReservedSystemCPUs != "" {
		cpus, err := parseCPUs(c.ReservedSystemCPUs)
		return cpus, err == nil
	}
	if h.ThreadsPerCore != 1 || h.NUMANodes != 1 {
		return nil, false
	}
	for cpu := range count {
		cpus = append(cpus, cpu)
	}
	return cpus, true
}

func without(cpus, these []int) []int {
	return slices.DeleteFunc(slices.Clone(cpus), func(cpu int) bool { return slices.Contains(these, cpu) })
}

// take gives a pod its CPUs, or tells why not. What a pod got that is refused for something else stays taken for a while.
func (p *cpuPool) take(c *candidate) verdict {
	if !p.static || c.wholeCPUs == 0 {
		return admitted
	}
	if p.wholeCore && p.threads != 1 {
		for _, cpus := range c.partOfCores {
			if p.threads == 0 || cpus%p.threads != 0 {
				return verdict{Reason: "SMTAlignmentError", certain: p.threads != 0, why: fmt.Sprintf("%d CPUs are not whole cores", cpus)}
			}
		}
	}
	if p.has[string(c.pod.UID)] || p.allHave && c.runs {
		return admitted
	}
	if c.wholeCPUs > p.free {
		return verdict{Reason: "UnexpectedAdmissionError", certain: p.certain, ordered: true,
			why: fmt.Sprintf("it wants %d CPUs alone, and %d are free", c.wholeCPUs, max(p.free, 0))}
	}
	p.free -= c.wholeCPUs
	return admitted
}
