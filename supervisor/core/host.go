package core

// Host is what kubelets have left on the host, and what is done about it before a start.
type Host struct {
	Asides           []Aside `json:"setAside,omitempty"`
	StateFiles       StateFiles
	WithoutStateFile []string    // starts that had their second chance without a state file, since the last health
	Limits           []KeptLimit `json:"limits,omitempty"`
	LimitCare        LimitCare
	Unit             Unit // that systemd starts the supervisor with
}

// setLimits reports whether a kubelet with v has set limits of the host, as far as is known.
func (host *Host) setLimits(v *Version) bool { return v != nil && len(host.Limits) > 0 }
