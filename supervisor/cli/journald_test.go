//go:build linux

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// journald is what the real one is to the program: a socket for lines with fields, and one for log streams, whose lines its journalctl
// prints again.
type journald struct {
	mu      sync.Mutex
	lines   []map[string]string
	streams []string // all that each said
	log     string   // path of what journalctl prints
	over    sync.WaitGroup
}

// listenAsJournald makes what n starts believe that its stderr is journald's.
func (n *node) listenAsJournald() *journald {
	n.t.Helper()
	if err := errors.Join(os.RemoveAll(journalFolder), os.Mkdir(journalFolder, 0o700)); err != nil {
		n.t.Fatal(err)
	}
	j := &journald{log: filepath.Join(n.folder, "journal.log")}
	lines, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(journalFolder, "socket"), Net: "unixgram"})
	streams, streamErr := net.Listen("unix", filepath.Join(journalFolder, "stdout"))
	reader, writer, pipeErr := os.Pipe()
	if err := errors.Join(err, streamErr, pipeErr); err != nil {
		n.t.Fatal(err)
	}
	n.stderr = writer
	info, err := writer.Stat()
	if err != nil {
		n.t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	n.t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", stat.Dev, stat.Ino))
	written(n.t, filepath.Join(n.folder, "bin", "journalctl"), "#!/bin/sh\nexec cat "+j.log+"\n")
	n.t.Setenv("PATH", filepath.Join(n.folder, "bin")+":"+os.Getenv("PATH"))
	j.over.Go(func() { j.takeLines(lines) })
	j.over.Go(func() { j.takeStreams(streams) })
	n.t.Cleanup(func() {
		_ = writer.Close()
		_ = reader.Close()
		_ = lines.Close()
		_ = streams.Close()
		j.over.Wait()
	})
	return j
}

func (j *journald) takeLines(from *net.UnixConn) {
	datagram := make([]byte, 64<<10)
	for {
		length, err := from.Read(datagram)
		if err != nil {
			return
		}
		fields := map[string]string{}
		for line := range strings.Lines(string(datagram[:length])) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			fields[name] = value
		}
		j.mu.Lock()
		j.lines = append(j.lines, fields)
		j.mu.Unlock()
	}
}

func (j *journald) takeStreams(from net.Listener) {
	for {
		stream, err := from.Accept()
		if err != nil {
			return
		}
		j.mu.Lock()
		number := len(j.streams)
		j.streams = append(j.streams, "")
		j.mu.Unlock()
		j.over.Go(func() {
			defer stream.Close()
			for reader := bufio.NewReader(stream); ; {
				line, err := reader.ReadString('\n')
				j.mu.Lock()
				j.streams[number] += line
				_ = os.WriteFile(j.log, []byte(j.streams[number]), 0o600)
				j.mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
}

// line gives the newest line with this message; nil when there is none.
func (j *journald) line(message string) map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, fields := range slices.Backward(j.lines) {
		if strings.HasPrefix(fields["MESSAGE"], message) {
			return fields
		}
	}
	return nil
}

func (j *journald) stream(number int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if number >= len(j.streams) {
		return ""
	}
	return j.streams[number]
}

func TestLinesInTheJournalHaveFields(t *testing.T) {
	n := newNode(t)
	n.seed("a", fakenode.Configuration("mode: ok"))
	journald := n.listenAsJournald()
	p := n.run()
	p.awaitHealthy()
	fakenode.Await(t, "the line", func() bool { return journald.line("kubelet is healthy") != nil })
	want := map[string]string{"MESSAGE": "kubelet is healthy", "PRIORITY": "6", "MESSAGE_ID": "5326173bad354e00a85985c0dce7a46e", "PHASE": "start",
		"CONFIG_SOURCE": "kube-system/a/kubelet", "CONFIG_UID": "uid-1", "CHANGE_TO": "kube-system/a/kubelet", "SYSLOG_IDENTIFIER": "kubelet-supervisor"}
	line := journald.line("kubelet is healthy")
	if took, err := strconv.Atoi(line["DURATION_USEC"]); err != nil || took <= 0 {
		t.Errorf("the start took %q", line["DURATION_USEC"])
	}
	delete(line, "DURATION_USEC")
	if diff := cmp.Diff(want, line); diff != "" {
		t.Errorf("the line (-want +got):\n%s", diff)
	}
	p.term()
	if end := journald.line("the kubelet is stopped, leaving"); end == nil || p.stderr.Len() > 0 {
		t.Errorf("the last line: %v; on stderr %s", end, p.stderr.String())
	}
}

// Lines about a Node's assignment name both.
func TestLinesInTheJournalNameTheNode(t *testing.T) {
	l := newLife(t, scenario{})
	l.api.put("a", fakenode.Configuration("mode: ok"))
	journald := l.listenAsJournald()
	p := l.run(l.flags...)
	p.awaitHealthy()
	l.api.assign("a")
	fakenode.Await(t, "it is on trial", func() bool { return strings.HasPrefix(l.api.shown(), "InTrial ") })
	// Each phase of the change is in the line that ends it, or in one of its own.
	for phase, words := range map[string]string{"download": "download of the change took", "preflight": "Kubelet restarting to use", "stop": "kubelet exited", "report": "report of the change took"} {
		fakenode.Await(t, words, func() bool { return journald.line(words) != nil })
		if line := journald.line(words); line["PHASE"] != phase || line["DURATION_USEC"] == "" || line["CHANGE_TO"] != "kube-system/a/kubelet" {
			t.Errorf("the end of phase %s is %v", phase, line)
		}
	}
	const change = "Kubelet restarting to use /api/v1/namespaces/kube-system/configmaps/a"
	fakenode.Await(t, "the line", func() bool { return journald.line(change) != nil })
	line := journald.line(change)
	for name, want := range map[string]string{"MESSAGE_ID": "b113641e76574d4fbdd9182ef34eec31", "NODE": "n1", "CONFIG_SOURCE": "kube-system/a/kubelet",
		"CONFIG_UID": "uid-a", "REASON": "KubeletConfigChanged", "PRIORITY": "6"} {
		if line[name] != want {
			t.Errorf("%s is %q, want %q, in %v", name, line[name], want, line)
		}
	}
	p.term()
}

func TestTheKubeletHasAStreamOfItsOwn(t *testing.T) {
	n := newNode(t)
	journald := n.listenAsJournald()
	p := n.run()
	before := p.awaitHealthy()
	fakenode.Await(t, "its log", func() bool { return strings.Contains(journald.stream(0), `"Starting kubelet"`) })
	if stream := journald.stream(0); !strings.HasPrefix(stream, "kubelet\n\n6\n1\n0\n0\n0\nI") {
		t.Errorf("the stream begins with %q", stream)
	}
	for _, fd := range []string{"1", "2"} {
		if target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", before.Child.PID, fd)); err != nil || !strings.HasPrefix(target, "socket:") {
			t.Errorf("descriptor %s is %s, %v", fd, target, err)
		}
	}
	n.reload()
	if after := p.awaitHealthy(); *after.Child != *before.Child {
		t.Errorf("after a reload another kubelet: %+v", after)
	}
	if err := syscall.Kill(before.Child.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	fakenode.Await(t, "another stream for another kubelet", func() bool { return strings.Contains(journald.stream(1), `"Starting kubelet"`) })
	if log, err := os.ReadFile(filepath.Join(n.runDir, "kubelet.log")); err != nil || len(log) > 0 {
		t.Errorf("the file holds %q, %v", log, err)
	}
	p.term()
}

func TestLastWordsComeFromTheJournal(t *testing.T) {
	crash := fakenode.Configuration("mode: crash, code: 7, words: out of luck, crashTimes: 1, counter: ")
	for name, row := range map[string]struct {
		journalctl, want string
	}{
		"as it prints them": {"", "exit code 7: out of luck"},
		"it fails":          {"#!/bin/sh\nexit 1\n", "exit code 7"},
		"it hangs":          {"#!/bin/sh\nexec sleep 1000\n", "exit code 7"},
		"it never ends":     {"#!/bin/sh\nexec yes\n", "exit code 7"},
		"it is not there":   {"-", "exit code 7"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			written(t, n.local, strings.Replace(crash, "counter: ", "counter: "+filepath.Join(n.folder, "starts"), 1))
			n.listenAsJournald()
			switch row.journalctl {
			case "":
			case "-":
				t.Setenv("PATH", n.folder)
			default:
				written(t, filepath.Join(n.folder, "bin", "journalctl"), row.journalctl)
			}
			record := n.run().awaitHealthy()
			if len(record.Exits) != 1 || !strings.HasSuffix(record.Exits[0].Words, row.want) {
				t.Errorf("recorded %+v", record.Exits)
			}
		})
	}
}

// Where journald gives no stream, or takes no lines, all goes where stderr is.
func TestWithoutJournald(t *testing.T) {
	n := newNode(t)
	n.listenAsJournald()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	info, _ := writer.Stat()
	stat := info.Sys().(*syscall.Stat_t)
	t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", stat.Dev, stat.Ino))
	if err := os.RemoveAll(journalFolder); err != nil {
		t.Fatal(err)
	}
	n.stderr = writer
	p := n.run()
	p.awaitHealthy()
	p.term()
	_ = writer.Close()
	log, err := io.ReadAll(reader)
	if err != nil || !strings.Contains(string(log), "<6>kubelet is healthy\n") || !strings.Contains(string(log), `"Starting kubelet"`) {
		t.Errorf("%v, stderr has:\n%s", err, log)
	}
	_ = reader.Close()
}
