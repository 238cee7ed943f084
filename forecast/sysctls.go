package forecast

import (
	"slices"
	"strings"
)

// safeSysctls are those that every supported kubelet lets any pod set.
var safeSysctls = []string{"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
	"net.ipv4.ip_unprivileged_port_start"}

// perhapsSafe are those that became so later, and with some kernels only.
var perhapsSafe = []string{"net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}

// forbidden returns a sysctl of the pod, with dots, that the configuration does not allow; "" for none. It is certain
// unless a newer kubelet may think it safe: known says that the configuration which runs has to allow it by name, so
// that it is not.
func (c *Configuration) forbidden(sysctls []string, now *Configuration) (name string, certain bool) {
	for _, sysctl := range sysctls {
		if slices.Contains(safeSysctls, sysctl) || c.allows(sysctl) {
			continue
		}
		sure := !slices.Contains(perhapsSafe, sysctl) && now.allows(sysctl)
		if name == "" || sure && !certain {
			name, certain = sysctl, sure
		}
	}
	return name, certain
}

func (c *Configuration) allows(sysctl string) bool {
	return slices.ContainsFunc(c.AllowedUnsafeSysctl, func(pattern string) bool {
		pattern = dotted(pattern)
		if prefix, _, is := strings.Cut(pattern, "*"); is {
			return strings.HasPrefix(sysctl, prefix)
		}
		return sysctl == pattern
	})
}

// dotted writes a sysctl with dots, as net.ipv4.conf.eth0/1.rp_filter is for net/ipv4/conf/eth0.1/rp_filter.
func dotted(sysctl string) string {
	first := strings.IndexAny(sysctl, "./")
	if first < 0 || sysctl[first] == '.' {
		return sysctl
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}, sysctl)
}
