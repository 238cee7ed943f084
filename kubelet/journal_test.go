package kubelet

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
