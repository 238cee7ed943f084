package kubeletconfig

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

import (
	"cmp"
	"encoding/json"
	"net"
	"net/netip"
	"strconv"
)

// The kubelet's own defaults (SetDefaults_KubeletConfiguration). The runtime endpoint is a field since 1.27 and was a flag with this
// default since 1.24.
const (
	defaultHealthzPort    = 10248
	defaultHealthzAddress = "127.0.0.1"
	defaultRuntime        = "unix:///run/containerd/containerd.sock"
)

// Endpoints says where a kubelet can be asked how it does.
type Endpoints struct {
	HealthzAddress    string // host:port, a wildcard replaced by loopback; "" when healthz is off (port 0)
	Runtime           string // the container runtime's endpoint as configured, e.g. unix:///run/containerd/containerd.sock; "" = unknown
	ReadinessByNotify bool   // healthz is off: only READY=1 on the notify socket tells
}

// EffectiveEndpoints looks the endpoints up where a kubelet with this command line and this file ("" for none) takes them from: its flags,
// else its drop-in files, else the file, else its defaults. What cannot be read or has a wrong type is as if absent: the kubelet itself
// refuses it. So it never asks a container runtime, which is unknown then.
func EffectiveEndpoints(argv []string, configFile string) Endpoints {
	arguments := commandline.Parse(argv)
	merged, whole := mergedTree(arguments, configFile)

	port := defaultHealthzPort
	if number, ok := merged["healthzPort"].(json.Number); ok {
		if configured, err := strconv.ParseUint(number.String(), 10, 16); err == nil {
			port = int(configured)
		}
	}
	if arguments.HealthzPort != nil {
		port = *arguments.HealthzPort
	}
	fromFile, _ := merged["healthzBindAddress"].(string)
	runtime, _ := merged["containerRuntimeEndpoint"].(string)
	endpoints := Endpoints{}
	if whole {
		endpoints.Runtime = cmp.Or(arguments.ContainerRuntimeEndpoint, runtime, defaultRuntime)
	}
	if port == 0 {
		endpoints.ReadinessByNotify = true
		return endpoints
	}
	address := cmp.Or(asIP(arguments.HealthzBindAddress), asIP(fromFile), defaultHealthzAddress)
	endpoints.HealthzAddress = net.JoinHostPort(address, strconv.Itoa(port))
	return endpoints
}

// asIP gives the address to connect to for one to listen on; "" when it is none.
func asIP(address string) string {
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		return ""
	case !ip.IsUnspecified():
		return ip.String()
	case ip.Is4():
		return "127.0.0.1"
	default:
		return "::1"
	}
}
