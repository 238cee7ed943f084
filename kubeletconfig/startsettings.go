package kubeletconfig

// StartSettings is what decides at the start of a kubelet, and only there, whether it runs on a host: no pre-flight gets that far.
type StartSettings struct {
	FailSwapOn         bool   // it ends where swap is on
	RotateCertificates bool   // it renews its client certificate
	RuntimeEndpoint    string // of the container runtime; "" = its configuration does not name it, as before Kubernetes 1.27
}

// StartSettings are those of an effective configuration; of one that is not known there are none.
func (e Effective) StartSettings() (settings StartSettings, known bool) {
	tree := e.Tree()
	if tree == nil {
		return StartSettings{}, false
	}
	settings.FailSwapOn = true // the kubelet's default, in every version
	if set, is := tree["failSwapOn"].(bool); is {
		settings.FailSwapOn = set
	}
	settings.RotateCertificates, _ = tree["rotateCertificates"].(bool)
	settings.RuntimeEndpoint, _ = tree["containerRuntimeEndpoint"].(string)
	return settings, true
}
