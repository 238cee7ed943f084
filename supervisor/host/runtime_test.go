//go:build linux

package host

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// aRuntime answers gRPC calls over HTTP/2 without TLS, as real ones do.
func aRuntime(t *testing.T, answers map[string]string, status map[string]string) *runtime {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s.sock")
	serve(t, socket, answers, status)
	r := newRuntime("unix://" + socket)
	t.Cleanup(r.close)
	return r
}

// serve answers at a socket until the test ends.
func serve(t *testing.T, socket string, answers map[string]string, status map[string]string) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: &protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/grpc" || r.ProtoMajor != 2 {
			http.Error(w, "no gRPC", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/grpc")
		answer, is := answers[r.URL.Path]
		if !is {
			w.Header().Set("Grpc-Status", status[r.URL.Path])
			w.Header().Set("Grpc-Message", "no such method")
			return
		}
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(answer))), answer...))
		w.Header().Set("Grpc-Status", "0")
	})}
	done := make(chan struct{})
	go func() { // ends with the server
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { _ = server.Close(); <-done })
}

// message is a protobuf field of bytes.
func message(number byte, value string) string {
	return string(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(value)))) + value
}

func TestImageFolder(t *testing.T) {
	usage := "\x08\x96\x01" + message(2, message(1, "/var/lib/images")) + message(3, "\x08\x01") // a timestamp before, a size behind
	r := aRuntime(t, map[string]string{imageFsInfo: message(1, usage) + message(1, message(2, message(1, "/other"))) + message(2, usage)}, nil)
	if folder, err := r.imageFolder(t.Context()); err != nil || folder != "/var/lib/images" {
		t.Errorf("%q, %v", folder, err)
	}
	r = aRuntime(t, map[string]string{imageFsInfo: ""}, nil)
	if folder, err := r.imageFolder(t.Context()); err == nil {
		t.Errorf("no folder: %q", folder)
	}
	r = aRuntime(t, nil, map[string]string{imageFsInfo: "14"})
	if _, err := r.imageFolder(t.Context()); err == nil || !strings.Contains(err.Error(), "status 14: no such method") {
		t.Errorf("an error: %v", err)
	}
}

// A runtime that has not answered is asked again; one that says that it cannot tell is not waited for.
func TestASilentRuntime(t *testing.T) {
	for status, silent := range map[string]bool{"14": true, "4": true, "12": false, "2": false} {
		if _, err := aRuntime(t, nil, map[string]string{imageFsInfo: status}).imageFolder(t.Context()); errors.Is(err, ErrSilent) != silent {
			t.Errorf("status %s: %v", status, err)
		}
	}
	r := aRuntime(t, map[string]string{imageFsInfo: ""}, nil)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.imageFolder(over); !errors.Is(err, ErrSilent) {
		t.Errorf("no time: %v", err)
	}
	r = newRuntime("unix://" + filepath.Join(t.TempDir(), "none.sock"))
	if _, err := r.imageFolder(t.Context()); !errors.Is(err, ErrSilent) {
		t.Errorf("no socket: %v", err)
	}
}

func TestCgroupDriver(t *testing.T) {
	for name, c := range map[string]struct {
		answers map[string]string
		status  string
		want    string
		fails   bool
	}{
		"cgroupfs":          {map[string]string{runtimeConfig: message(1, "\x08\x01")}, "", "cgroupfs", false},
		"systemd":           {map[string]string{runtimeConfig: message(1, "")}, "", "systemd", false},
		"none":              {map[string]string{runtimeConfig: ""}, "", "", false},
		"an older runtime":  {nil, unimplemented, "", false},
		"a runtime in need": {nil, "14", "", true},
	} {
		r := aRuntime(t, c.answers, map[string]string{runtimeConfig: c.status})
		if got, err := r.cgroupDriver(t.Context()); got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestRuntimeAnswers(t *testing.T) {
	folder := t.TempDir()
	listen := func(name string) string {
		listener, err := net.Listen("unix", filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		return listener.Addr().String()
	}
	served := func(answers, status map[string]string) string {
		socket := filepath.Join(t.TempDir(), "s.sock")
		serve(t, socket, answers, status)
		return socket
	}
	for name, test := range map[string]struct {
		socket  string
		answers bool
	}{
		"it answers":               {served(map[string]string{version: message(1, "0.1.0")}, nil), true},
		"it does not know CRI v1":  {served(nil, map[string]string{version: unimplemented}), true},
		"it has an error":          {served(nil, map[string]string{version: "14"}), true},
		"it is not there":          {filepath.Join(folder, "none"), false},
		"it accepts no connection": {listen("silent"), false},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if strings.HasSuffix(test.socket, "silent") {
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		}
		if err := RuntimeAnswers(ctx, "unix://"+test.socket); (err == nil) != test.answers {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

func TestFindInBrokenMessages(t *testing.T) {
	for _, text := range []string{"\x80", "\x0a", "\x0a\x05ab", "\x08", "\x09\x01", "\x0d\x01\x02", "\x0b", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"} {
		if value, found := find([]byte(text), 1); found {
			t.Errorf("%q: %q", text, value)
		}
	}
	if value, found := find([]byte("\x09\x01\x02\x03\x04\x05\x06\x07\x08\x15\x01\x02\x03\x04"+message(3, "x")), 3); !found || string(value) != "x" {
		t.Errorf("%q", value)
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(message(1, message(2, "x"))), uint64(1))
	f.Fuzz(func(t *testing.T, text []byte, number uint64) {
		if value, found := find(text, number); len(value) > len(text) || !found && value != nil {
			t.Errorf("%q", value)
		}
	})
}
