package forecast

// Managers are the kubelet's, which give CPUs and memory to containers alone, and place them on NUMA nodes.
type managers struct {
	numa   numaRule
	cpus   []cpuPool    // one for each state that the CPU manager may start with
	memory []memoryPool // … and the memory manager
}

func newManagers(c *Configuration, f Facts, r room, list []*candidate) (managers, error) {
	memory, err := memoryPoolsOf(c, f.Now, f.Host)
	return managers{numaRuleOf(c, f.Now, f.Host), poolsOf(c, f.Now, f.Host, r, list), memory}, err
}

// clone is for one more round, in which all is as it was.
func (m managers) clone() managers {
	m.cpus = append([]cpuPool(nil), m.cpus...)
	pools := m.memory
	m.memory = nil
	for _, p := range pools {
		m.memory = append(m.memory, p.clone())
	}
	return m
}

// take gives the containers of a pod what they get alone, one after the other, or returns why not. What a pod got
// before it was refused stays taken for a while.
func (a *admission) take(c *candidate) verdict {
	doubt := admitted
	turns, memory := make([]cpuTurn, len(a.managers.cpus)), make([]memoryTurn, len(a.managers.memory))
	for i, wants := range c.containers {
		v := a.managers.place(c, i)
		if a.lost(v) {
			return v
		}
		doubted := doubt.refused() || v.refused()
		v = v.first(eachOf(a.managers.cpus, func(p *cpuPool, i int) verdict {
			turns[i].doubted = doubted
			return p.take(&turns[i], c, wants)
		}))
		if !v.certain {
			doubted = doubted || v.refused()
			v = v.first(eachOf(a.managers.memory, func(p *memoryPool, i int) verdict {
				memory[i].doubted = doubted
				return p.take(&memory[i], c, wants)
			}))
		}
		switch {
		case a.lost(v):
			return v
		case !doubt.refused():
			doubt = v
		}
	}
	if len(c.containers) == 0 {
		return a.managers.place(c, 0)
	}
	return doubt
}

// first is the verdict that comes first, unless another one is certain.
func (v verdict) first(other verdict) verdict {
	if !v.refused() || other.refused() && other.certain && !v.certain {
		return other
	}
	return v
}

// eachOf asks all pools that may be. What only some refuse is not certain.
func eachOf[pool any](pools []pool, ask func(p *pool, i int) verdict) verdict {
	all := admitted
	refused := 0
	for i := range pools {
		v := ask(&pools[i], i)
		if !v.refused() {
			continue
		}
		refused++
		if !all.refused() {
			all = v
		}
		all.certain = all.certain && v.certain
	}
	all.certain = all.certain && refused == len(pools)
	return all
}
