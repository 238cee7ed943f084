package forecast

// A Sandbox is a pod that runs, as the container runtime knows it. The kubelet's pods are those: one that the API does not show may be among them.
type Sandbox struct {
	ID                   string
	Namespace, Name, UID string
	Source               string // where the kubelet has the pod from: api, file or http; "": not told

	Labels, Annotations map[string]string // of a static pod, as its manifest has them
}

// Static tells whether the pod does not come from the API.
func (s *Sandbox) Static() bool { return s.Source != "" && s.Source != "api" }
