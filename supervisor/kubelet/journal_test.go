//go:build linux

package kubelet

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// What is kept of a long journal is its end: the error that a kubelet ended with, and not an older one. This journalctl is as that of systemd
// before 254, which of --lines gives the oldest where --since is there, too, unless the newest are to come first.
func TestTheLastWordsInALongJournal(t *testing.T) {
	folder := t.TempDir()
	script := `#!/bin/sh
journal() { echo 'E0102 15:04:05.000000 1 a.go:1] An old error: harmless'; seq 300; head -c 3000000 /dev/zero | tr '\0' x; echo; echo 'E0102 15:04:05.000000 1 a.go:1] the very reason'; echo bye; }
case "$*" in
*--reverse*) journal | tac | head -n 200;;
*--since*) journal | head -n 200;;
*) journal | tail -n 200;;
esac
`
	if err := os.WriteFile(filepath.Join(folder, "journalctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	words := journalWords(t.Context(), 1, 0)
	if !strings.HasSuffix(string(words), "the very reason\nbye\n") || len(words) > outputRemembered+1 {
		t.Errorf("%d bytes, the end is %q", len(words), words[max(0, len(words)-60):])
	}
}

// A clock that is set hides no line of a kubelet.
func TestTheFirstLineOfAKubelet(t *testing.T) {
	began := time.Unix(1000, 900_000_000)
	for name, row := range map[string]struct {
		now  time.Time
		want int64
	}{
		"the clock goes on":        {began.Add(100 * time.Second), 999},
		"it was set an hour back":  {began.Add(100*time.Second - time.Hour), 1000 - 3600 - 1},
		"it was set an hour ahead": {began.Add(100*time.Second + time.Hour), 999},
	} {
		if got := earliestLine(began, row.now, 100*time.Second); got != row.want {
			t.Errorf("%s: %d, not %d", name, got, row.want)
		}
	}
}

func TestHeadBufferIsBounded(t *testing.T) {
	b := &headBuffer{limit: 10}
	if n, err := io.Copy(b, strings.NewReader("0123456789"+strings.Repeat("x", 1<<20))); n != 1<<20+10 || err != nil {
		t.Errorf("took %d, %v", n, err)
	}
	if string(b.kept) != "0123456789" || cap(b.kept) > 100 {
		t.Errorf("kept %q in %d bytes", b.kept, cap(b.kept))
	}
}

// A kubelet whose log goes to journald has a stream of its own there, and says so in its environment as systemd's services do.
func TestAJournalStreamOfItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdout")
	journald, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer journald.Close()
	heard := make(chan string, 1)
	go func() {
		connection, err := journald.Accept()
		if err != nil {
			heard <- err.Error()
			return
		}
		defer connection.Close()
		_ = connection.SetReadDeadline(time.Now().Add(fakenode.Patience))
		all, err := io.ReadAll(connection) // the end comes when nobody has the stream any more
		heard <- fmt.Sprint(string(all), err)
	}()
	command := exec.Command("/bin/sh", "-c", `[ "$JOURNAL_STREAM" = "$(stat -L -c %d:%i /proc/self/fd/2)" ] && echo its own; env | grep -c JOURNAL_STREAM; echo error >&2`)
	command.Env = append(os.Environ(), "JOURNAL_STREAM=1:1", "OTHER=1")
	done, err := attachJournal(path, command)
	if err != nil {
		t.Fatal(err)
	}
	if streams := slices.DeleteFunc(slices.Clone(command.Env), func(entry string) bool { return !strings.HasPrefix(entry, "JOURNAL_STREAM=") }); len(streams) != 1 || !slices.Contains(command.Env, "OTHER=1") {
		t.Errorf("its environment is %q", command.Env)
	}
	if err := command.Run(); err != nil {
		t.Error(err)
	}
	done()
	if got, want := <-heard, "kubelet\n\n6\n1\n0\n0\n0\nits own\n1\nerror\n<nil>"; got != want {
		t.Errorf("journald heard %q, want %q", got, want)
	}
	_ = journald.Close()
	if done, err := attachJournal(path, command); done != nil || err == nil || !strings.Contains(err.Error(), "opening a log stream") {
		t.Errorf("without journald: %v", err)
	}
}

// A journal that cannot be read, and one without an error, say nothing.
func TestAJournalThatSaysNothing(t *testing.T) {
	for name, script := range map[string]string{"it fails": "echo 'E0102 15:04:05.000000 1 a.go:1] words'; exit 1", "no error in it": "echo bye"} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, filepath.Join(folder, "journalctl"), "#!/bin/sh\n"+script+"\n")
			if err := os.Chmod(filepath.Join(folder, "journalctl"), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
			if words := journalWords(t.Context(), 1, 0); words != nil {
				t.Errorf("got %q", words)
			}
		})
	}
}
