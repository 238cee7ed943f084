package core

import "slices"

// learnCluster compares the keys of the cluster's certificate authorities with those that were kept with the assignment (rule 18). No
// key in common is another cluster, whose kubelet is not configured by what the old one had assigned: all of it is forgotten, and local
// runs. Some in common renew the set, so that a rotation of the authority changes nothing. No keys say nothing.
func learnCluster(s *State, keys []string) {
	if len(keys) == 0 {
		return
	}
	known := s.Cluster
	if len(known) > 0 && !slices.ContainsFunc(known, func(key string) bool { return slices.Contains(keys, key) }) && s.remembersAssignment() {
		was := s.Assigned
		s.restore(Durable{Proofs: s.Proofs, Account: Account{Retry: s.Retry, Asides: s.Asides, Limits: s.Limits}})
		forgetAssignment(s)
		s.Child.Foreign = s.Child.Version != nil
		if save, is := s.Doing.(Save); is {
			save.assigned = nil // it is of the old cluster, and will not be adopted
			s.Doing = save
		}
		s.Observed = nil // what the Node asks for is not known yet
		s.Warning = "this node's kubeconfig is of another cluster than " + Describe(was) + ", which is forgotten"
	}
	s.Cluster = slices.Clone(keys)
}

// forgetAssignment drops what is under way for an assignment that no longer holds.
func forgetAssignment(s *State) {
	s.Pending, s.Edit, s.Reset, s.Sync, s.Lost, s.Shadowed = nil, nil, nil, nil, false, false
	s.ApplyAt, s.Environment, s.Exit, s.Unrenderable = 0, "", "", nil
}
