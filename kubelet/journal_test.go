package kubelet

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is kept of journalctl's answer is its end: the error that a kubelet ended with, and not an older one.
func TestTheLastWordsInALongJournal(t *testing.T) {
	folder := t.TempDir()
	script := "#!/bin/sh\necho 'E0102 15:04:05.000000 1 a.go:1] An old error: harmless'\nhead -c 3000000 /dev/zero | tr '\\0' x; echo\n" +
		"echo 'E0102 15:04:05.000000 1 a.go:1] the very reason'\n"
	if err := os.WriteFile(filepath.Join(folder, "journalctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	words := journalWords(t.Context(), 1, 0)
	if !strings.HasSuffix(string(words), "the very reason\n") || len(words) > outputRemembered {
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

func TestTailBufferIsBounded(t *testing.T) {
	b := &tailBuffer{limit: 10}
	if n, err := io.Copy(b, strings.NewReader(strings.Repeat("x", 1<<20)+"0123456789")); n != 1<<20+10 || err != nil {
		t.Errorf("took %d, %v", n, err)
	}
	if string(b.end()) != "0123456789" || cap(b.kept) > 100 {
		t.Errorf("kept %q in %d bytes", b.end(), cap(b.kept))
	}
}
