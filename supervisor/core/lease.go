package core

// The kubelet's own Lease (rule 7): a healthz that answers stays green while a bad content type or certificate has lost the node. A
// renewal is one that a look has seen, and so is its absence: no wall clock is compared, and the mere passing of time proves nothing.

// watchesLease reports whether to look at the Lease: in a trial and its control, and after each start until it is known whether the kubelet
// renews its Lease at all, for the next trial. Where that cannot be learnt, because it is forbidden or the API server is away, the looks
// end too.
func watchesLease(s *State) bool {
	switch {
	case !s.Child.Alive || s.Standalone:
		return false
	case s.OnTrial() || controlNeedsLease(s):
		return true
	}
	return !s.Lease.Renewed && !s.Lease.Lost && s.Now < s.Child.Started+2*s.leaseLimit()
}

func learnLease(s *State, e LeaseSeen) {
	l := &s.Lease
	if !l.Reachable {
		l.ReachableSince = s.Now
	}
	l.Reachable, l.Problem = e.Reachable, e.Problem
	if e.Duration != 0 {
		l.Duration = e.Duration
	}
	s.Renews = s.Renews || e.RenewedBefore
	switch {
	case e.Renewed:
		l.Renewed, l.RenewedAt, l.Lost = true, s.Now, false
		s.Renews = true
	case e.Reachable && s.Now >= s.leaseLostAt():
		l.Lost = true
		if !s.OnTrial() && s.Child.Healthy {
			s.Renews = false // not even without the configuration that will be on trial next
		}
	}
	if s.OnTrial() {
		s.Trial.Renewed = s.Trial.Renewed || e.Renewed
		s.Trial.Baseline = s.Trial.Baseline || e.Renewed || e.RenewedBefore
	}
}
