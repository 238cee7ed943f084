package kubeletconfig

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// defaultResolvConf is the kubelet's own default (ResolvConfDefault).
const defaultResolvConf = "/etc/resolv.conf"

// ResolvConf is the file that a kubelet with this configuration reads for every new pod that uses the node's resolver or is in need of it;
// "" is none. It is not known where the configuration is not.
func (e Effective) ResolvConf() (path string, known bool) {
	tree := e.Tree()
	if tree == nil {
		return "", false
	}
	path, said := tree["resolvConf"].(string)
	if !said {
		return defaultResolvConf, true
	}
	return path, true
}

// MissingResolvConf says, in words for a refusal, that a configuration names a resolv.conf which this node does not have, or which is not a
// regular file that can be read; empty = it has it, or that is not known. A kubelet starts with it and can start no pod. own is the node's
// own configuration: what that misses, too, is no fault of the other.
func MissingResolvConf(then, own Effective) string {
	path, known := then.ResolvConf()
	if ownPath, ownKnown := own.ResolvConf(); !known || path == "" || ownKnown && path == ownPath {
		return ""
	}
	fault := resolvConfFault(path)
	if fault == "" {
		return ""
	}
	return Quote(fmt.Sprintf("resolvConf names %s, and %s, so that no pod could be started; "+
		"name one that every node has, or leave resolvConf to the node's own configuration", path, fault))
}

// resolvConfFault says what keeps a kubelet from reading the file; empty = nothing does, or that is not known, as with too many open files.
func resolvConfFault(path string) string {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return "on this node that is a directory, not a file"
	}
	if err == nil && !info.Mode().IsRegular() {
		return "on this node that is not a regular file"
	}
	if err == nil {
		err = readsByte(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "this node does not have that file"
	case errors.Is(err, fs.ErrPermission):
		return "this node does not let it be read: permission denied"
	}
	for _, fault := range []syscall.Errno{syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG} {
		if errors.Is(err, fault) {
			return "this node cannot have that file: " + fault.Error()
		}
	}
	return ""
}

// readsByte says why nothing of a regular file can be read; one that is empty can be read.
func readsByte(path string) error {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // another one may have its place by now
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err = file.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// LoopingResolver warns of a configuration whose resolv.conf names only loopback addresses, where one of the others
// names a server that pods can reach; empty = nothing to warn of. A pod that uses the node's resolver, such as
// CoreDNS, would ask itself.
func LoopingResolver(then Effective, others ...Effective) string {
	path, known := then.ResolvConf()
	if !known || path == "" {
		return ""
	}
	only := nameServers(path)
	if len(only) == 0 || len(reachable(only)) > 0 {
		return ""
	}
	for _, other := range others {
		if instead, known := other.ResolvConf(); known && instead != path && len(reachable(nameServers(instead))) > 0 {
			return Quote(fmt.Sprintf("DNS of new pods that use the node's resolver will loop, CoreDNS's too: resolvConf is %s, whose only name server is the loopback address %s; "+
				"%s names another", path, only[0], instead))
		}
	}
	return ""
}

// nameServers are those of a resolv.conf, as the kubelet reads it; none when it cannot be read.
func nameServers(path string) (servers []string) {
	if path == "" {
		return nil
	}
	content, err := ReadFile(path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(content)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "nameserver" {
			servers = append(servers, words[1])
		}
	}
	return servers
}

// reachable leaves out loopback addresses, which lead a pod to itself. What is no address counts as one that can be
// reached, because it is unknown.
func reachable(servers []string) (others []string) {
	for _, server := range servers {
		if address, err := netip.ParseAddr(server); err != nil || !address.Unmap().IsLoopback() {
			others = append(others, server)
		}
	}
	return others
}
