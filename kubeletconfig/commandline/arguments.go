package commandline

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Arguments is what a kubelet command line says, as far as a supervisor has to know it. A field is empty (or nil) when its flag is not
// given. Paths are absolute; a relative one counts from the working directory, which the kubelet inherits.
type Arguments struct {
	Config                   string // --config, a file
	ConfigDir                string // --config-dir, the folder of the drop-in files
	Kubeconfig               string // --kubeconfig, a file
	BootstrapKubeconfig      string // --bootstrap-kubeconfig, a file
	HostnameOverride         string // --hostname-override
	HealthzBindAddress       string // --healthz-bind-address, an IP address
	ContainerRuntimeEndpoint string // --container-runtime-endpoint, e.g. unix:///run/containerd/containerd.sock
	RootDir                  string // --root-dir, the folder of the kubelet's own files
	CertDir                  string // --cert-dir, the folder of the certificates that the kubelet renews
	HealthzPort              *int   // --healthz-port; 0 turns healthz off
	FeatureGates             map[string]bool
}

// setters has the flags that are read. They are the only ones known to take a second word: `--some-flag value` of any other flag passes by
// as two words that mean nothing here.
var setters = map[string]func(*Arguments, string){
	"config":                     func(a *Arguments, v string) { a.Config = absolute(v) },
	"config-dir":                 func(a *Arguments, v string) { a.ConfigDir = absolute(v) },
	"kubeconfig":                 func(a *Arguments, v string) { a.Kubeconfig = absolute(v) },
	"bootstrap-kubeconfig":       func(a *Arguments, v string) { a.BootstrapKubeconfig = absolute(v) },
	"hostname-override":          func(a *Arguments, v string) { a.HostnameOverride = v },
	"healthz-bind-address":       func(a *Arguments, v string) { a.HealthzBindAddress = v },
	"container-runtime-endpoint": func(a *Arguments, v string) { a.ContainerRuntimeEndpoint = v },
	"root-dir":                   func(a *Arguments, v string) { a.RootDir = absolute(v) },
	"cert-dir":                   func(a *Arguments, v string) { a.CertDir = absolute(v) },
	"healthz-port":               setHealthzPort,
	"feature-gates":              addFeatureGates,
}

// Parse reads a kubelet command line, without the binary, as the kubelet's own flag library does: `--a=b`, `--a b`, `_` for `-` in
// names, the last one wins, feature gates add up, and nothing behind a bare `--` is a flag. A value that the kubelet would refuse is as if
// not given: the kubelet says so itself.
func Parse(argv []string) Arguments {
	var arguments Arguments
	for i := 0; i < len(argv) && argv[i] != "--"; i++ {
		flag, isFlag := strings.CutPrefix(argv[i], "--")
		if !isFlag {
			continue
		}
		name, value, hasValue := strings.Cut(flag, "=")
		set, known := setters[strings.ReplaceAll(name, "_", "-")]
		if !known {
			continue
		}
		if !hasValue {
			if i++; i == len(argv) {
				break
			}
			value = argv[i]
		}
		set(&arguments, value)
	}
	return arguments
}

// NamesFlag reports whether a kubelet command line has one of these flags.
func NamesFlag(argv []string, names ...string) bool {
	for _, word := range argv {
		if word == "--" {
			return false
		}
		flag, isFlag := strings.CutPrefix(word, "--")
		name, _, _ := strings.Cut(flag, "=")
		if isFlag && slices.Contains(names, strings.ReplaceAll(name, "_", "-")) {
			return true
		}
	}
	return false
}

func absolute(path string) string {
	if path == "" {
		return ""
	}
	full, err := filepath.Abs(path)
	if err != nil { // the working directory is gone: the kubelet would not find the file either
		return path
	}
	return full
}

func setHealthzPort(a *Arguments, value string) {
	if number, err := strconv.ParseUint(value, 10, 16); err == nil {
		port := int(number)
		a.HealthzPort = &port
	}
}

func addFeatureGates(a *Arguments, value string) {
	for pair := range strings.SplitSeq(value, ",") {
		name, setting, _ := strings.Cut(pair, "=")
		enabled, err := strconv.ParseBool(strings.TrimSpace(setting))
		if name = strings.TrimSpace(name); name == "" || err != nil {
			continue
		}
		if a.FeatureGates == nil {
			a.FeatureGates = map[string]bool{}
		}
		a.FeatureGates[name] = enabled
	}
}
