//go:build linux

package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/kubeletlog"
)

// On journald the kubelet has a log stream of its own: its lines carry its own pid and the identifier kubelet, and no process is between
// the two. Its last words are then read back from the journal.
const (
	journalDialWait  = time.Second
	journalBuffer    = 8 << 20 // as systemd gives its services: a journald that stalls does not stop the kubelet at once
	journalWordsWait = time.Second
	journalWordsPoll = 100 * time.Millisecond
	journalLines     = 200
)

// streamHeader is what journald expects first: identifier, unit (its own by the cgroup), priority of lines that name none, whether lines
// may name theirs, and three ways to forward (stdout_stream_line of systemd's journald-stream.c).
const streamHeader = "kubelet\n\n6\n1\n0\n0\n0\n"

// openJournalStream returns a file for a process's stdout and stderr.
func openJournalStream(socket string) (*os.File, error) {
	connection, err := net.DialTimeout("unix", socket, journalDialWait)
	if err != nil {
		return nil, fmt.Errorf("opening a log stream: %w", err)
	}
	defer func() { _ = connection.Close() }()
	stream, is := connection.(*net.UnixConn)
	if !is {
		return nil, errors.New("opening a log stream: it is no Unix socket")
	}
	_ = stream.SetWriteBuffer(journalBuffer)
	_ = stream.SetWriteDeadline(time.Now().Add(journalDialWait))
	if _, err := io.WriteString(stream, streamHeader); err != nil {
		return nil, fmt.Errorf("opening a log stream: %w", err)
	}
	_ = stream.CloseRead()
	file, err := stream.File()
	if err != nil {
		return nil, fmt.Errorf("opening a log stream: %w", err)
	}
	return file, nil
}

// attachJournal makes a stream of its own the command's output. done closes ours once the command was started.
func attachJournal(socket string, command *exec.Cmd) (done func(), err error) {
	stream, err := openJournalStream(socket)
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr = stream, stream
	// What systemd promises its services of their stderr holds for the kubelet too.
	command.Env = slices.DeleteFunc(command.Env, func(entry string) bool { return strings.HasPrefix(entry, "JOURNAL_STREAM=") })
	if info, err := stream.Stat(); err == nil {
		if s, is := info.Sys().(*syscall.Stat_t); is {
			command.Env = append(command.Env, fmt.Sprintf("JOURNAL_STREAM=%d:%d", s.Dev, s.Ino))
		}
	}
	return func() { _ = stream.Close() }, nil
}

// earliestLine is the time of day, in seconds, that the first line of a kubelet may have, which began then and has run for so long by the
// clock that cannot be set. A clock that was set back has given its lines earlier times.
func earliestLine(began, now time.Time, ran time.Duration) int64 {
	return min(began.Unix(), now.Unix()-int64(ran/time.Second)) - 1
}

// journalWords gives the end of what a kubelet wrote. journald takes a moment to write down the last line, so an end without an error is
// looked at again for a while. Without journalctl nothing is known.
func journalWords(ctx context.Context, pid int, since int64) []byte {
	ctx, cancel := context.WithTimeout(ctx, journalWordsWait)
	defer cancel()
	for {
		words := &headBuffer{limit: outputRemembered}
		// The newest first: before systemd 254 --lines and --since together give the oldest lines (systemd's issue 26657).
		command := exec.CommandContext(ctx, "journalctl", "--quiet", "--boot", "--output=cat", "--reverse", fmt.Sprintf("--lines=%d", journalLines),
			fmt.Sprintf("--since=@%d", since), "SYSLOG_IDENTIFIER=kubelet", fmt.Sprintf("_PID=%d", pid))
		command.Stdout, command.WaitDelay = words, journalWordsPoll
		if err := command.Run(); err != nil {
			return nil
		}
		if end := oldestFirst(words.kept); kubeletlog.LastErrorLine(end) != "" {
			return end
		}
		select {
		case <-time.After(journalWordsPoll):
		case <-ctx.Done():
			return nil
		}
	}
}

// oldestFirst turns lines round, of which the last may be cut.
func oldestFirst(lines []byte) []byte {
	all := bytes.Split(bytes.TrimSuffix(lines, []byte("\n")), []byte("\n"))
	slices.Reverse(all)
	return append(bytes.Join(all, []byte("\n")), '\n')
}

// headBuffer keeps the begin of what is written.
type headBuffer struct {
	limit int
	kept  []byte
}

func (b *headBuffer) Write(data []byte) (int, error) {
	b.kept = append(b.kept, data[:min(len(data), b.limit-len(b.kept))]...)
	return len(data), nil
}
