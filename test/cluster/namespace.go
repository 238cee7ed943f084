//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

const ownNamespace = "/proc/thread-self/ns/net"

// namespace is the file that the network namespace is mounted on. It is below the folder, so that unmounting what is below
// the folder ends it.
func (c *Cluster) namespace() string { return namespaceFile(c.Folder) }

func namespaceFile(folder string) string { return folder + "/network-namespace" }

// makeNamespace makes the network namespace with loopback, the node's address and a default route, without which a kubelet
// finds no address. Both ends of the veth pair are inside: a dummy device would need a kernel module.
func (c *Cluster) makeNamespace() error {
	if err := os.WriteFile(c.namespace(), nil, 0o600); err != nil {
		return err
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, now elsewhere, ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = unix.Mount(ownNamespace, c.namespace(), "", unix.MS_BIND, "")
		}
		result <- err
	}()
	if err := <-result; err != nil {
		return fmt.Errorf("making a network namespace: %w", err)
	}
	ip := c.Command("ip", "-batch", "-")
	ip.Stdin = strings.NewReader(strings.Join([]string{
		"link set lo up",
		"link add node type veth peer name peer",
		"addr add " + NodeAddress + "/24 dev node",
		"link set node up",
		"link set peer up",
		"route add default dev node",
	}, "\n") + "\n")
	if output, err := ip.CombinedOutput(); err != nil {
		return fmt.Errorf("setting the network namespace up with ip: %w: %s", err, output)
	}
	return nil
}

// Dial connects from inside the namespace. address is IP:PORT.
func (c *Cluster) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	type dialled struct {
		connection net.Conn
		err        error
	}
	result := make(chan dialled, 1)
	go func() { // bounded by ctx; a thread that cannot come back from the namespace ends with it
		var d dialled
		runtime.LockOSThread()
		home, err := inNamespace(c.namespace(), func() { d.connection, d.err = new(net.Dialer).DialContext(ctx, network, address) })
		if home {
			runtime.UnlockOSThread()
		}
		d.err = errors.Join(d.err, err)
		result <- d
	}()
	d := <-result
	if d.err != nil {
		return nil, fmt.Errorf("dialling in the network namespace: %w", d.err)
	}
	return d.connection, nil
}

// Listen listens inside the namespace. address is IP:PORT.
func (c *Cluster) Listen(ctx context.Context, address string) (listener net.Listener, err error) {
	result := make(chan error, 1)
	go func() { // a thread that cannot come back from the namespace ends with it
		var listenErr error
		runtime.LockOSThread()
		home, err := inNamespace(c.namespace(), func() { listener, listenErr = new(net.ListenConfig).Listen(ctx, "tcp", address) })
		if home {
			runtime.UnlockOSThread()
		}
		result <- errors.Join(listenErr, err)
	}()
	if err := <-result; err != nil {
		return nil, fmt.Errorf("listening in the network namespace: %w", err)
	}
	return listener, nil
}

// inNamespace runs do with this thread, which the caller has locked, in the namespace. home is false when the thread could
// not come back.
func inNamespace(file string, do func()) (home bool, err error) {
	own, err := os.Open(ownNamespace)
	if err != nil {
		return true, err
	}
	defer own.Close()
	there, err := os.Open(file)
	if err != nil {
		return true, err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return true, fmt.Errorf("entering %s: %w", file, err)
	}
	do()
	return unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil, nil
}
