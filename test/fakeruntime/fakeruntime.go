// Package fakeruntime is a container runtime that runs nothing, for nodes with a fake kubelet: it answers the CRI's question for sandboxes with a
// fixed list, and knows no other.
package fakeruntime

import (
	"encoding/binary"
	"net"
	"net/http"
)

const (
	listPodSandbox = "/runtime.v1.RuntimeService/ListPodSandbox"
	unimplemented  = "12" // a gRPC status
)

// A Pod is one of the API that has a ready sandbox.
type Pod struct{ Namespace, Name, UID string }

// Serve takes connections at this socket until stop is called.
func Serve(socket string, pods ...Pod) (stop func(), err error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: &protocols, Handler: answer(pods)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(listener)
	}()
	return func() { _ = server.Close(); <-over }, nil
}

func answer(pods []Pod) http.HandlerFunc {
	list := ""
	for _, p := range pods {
		list += field(1, p.sandbox())
	}
	message := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(list))) // not compressed, and its length
	message = append(message, list...)
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		if r.URL.Path != listPodSandbox {
			w.Header().Set("Grpc-Status", unimplemented)
			return
		}
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = w.Write(message)
		w.Header().Set("Grpc-Status", "0")
	}
}

// sandbox is a PodSandbox: its id (1), labels (5) and annotations (6). The state (3) of one that is ready is 0, and not sent.
func (p Pod) sandbox() string {
	entry := func(key, value string) string { return field(1, key) + field(2, value) }
	return field(1, "box-"+p.UID) + field(5, entry("io.kubernetes.pod.namespace", p.Namespace)) + field(5, entry("io.kubernetes.pod.name", p.Name)) +
		field(5, entry("io.kubernetes.pod.uid", p.UID)) + field(6, entry("kubernetes.io/config.source", "api"))
}

// field is one of a protobuf message, of a type with a length.
func field(number byte, value string) string {
	return string(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(value)))) + value
}
