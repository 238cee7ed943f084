//go:build linux

package kubelet

import (
	"unicode"
	"unicode/utf8"
)

// Kubelets up to 1.36 tell their configuration in the field names of their own internal type. In v1beta1 these begin with a small letter,
// except the ones below (pkg/kubelet/apis/config and k8s.io/kubelet/config/v1beta1, the same from Kubernetes 1.26 to 1.36).
var fieldNames = map[string]string{
	"CPUCFSQuota":               "cpuCFSQuota",
	"CPUCFSQuotaPeriod":         "cpuCFSQuotaPeriod",
	"CPUManagerPolicy":          "cpuManagerPolicy",
	"CPUManagerPolicyOptions":   "cpuManagerPolicyOptions",
	"CPUManagerReconcilePeriod": "cpuManagerReconcilePeriod",
	"HTTPCheckFrequency":        "httpCheckFrequency",
	"IDsPerPod":                 "idsPerPod",
	"IPTablesDropBit":           "iptablesDropBit",
	"IPTablesMasqueradeBit":     "iptablesMasqueradeBit",
	"OOMScoreAdj":               "oomScoreAdj",
	"QOSReserved":               "qosReserved",
	"ResolverConfig":            "resolvConf",
	"TLSCertFile":               "tlsCertFile",
	"TLSCipherSuites":           "tlsCipherSuites",
	"TLSCurvePreferences":       "tlsCurvePreferences",
	"TLSMinVersion":             "tlsMinVersion",
	"TLSPrivateKeyFile":         "tlsPrivateKeyFile",
}

// structFields are the fields, in the names of v1beta1, whose values have fields of the internal type in turn. What is in any other mapping
// was named by the author of the configuration, and stays as it is.
var structFields = map[string]bool{
	"authentication":                   true,
	"anonymous":                        true,
	"webhook":                          true,
	"x509":                             true,
	"authorization":                    true,
	"crashLoopBackOff":                 true,
	"memorySwap":                       true,
	"reservedMemory":                   true,
	"shutdownGracePeriodByPodPriority": true,
	"userNamespaces":                   true,
}

// versioned gives the tree of an internal configuration in the field names of v1beta1. One that has them already stays as it is.
func versioned(tree map[string]any) map[string]any {
	renamed := make(map[string]any, len(tree))
	for name, value := range tree {
		name = versionedName(name)
		if structFields[name] {
			value = versionedValue(value)
		}
		renamed[name] = value
	}
	return renamed
}

func versionedValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return versioned(value)
	case []any:
		for i := range value {
			value[i] = versionedValue(value[i])
		}
	}
	return value
}

func versionedName(name string) string {
	if known, is := fieldNames[name]; is {
		return known
	}
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(first)) + name[size:]
}
