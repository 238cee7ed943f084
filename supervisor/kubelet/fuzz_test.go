//go:build linux

package kubelet

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func FuzzListeners(f *testing.F) {
	const header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	f.Add([]byte(header+"   0: 0100007F:2808 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21405 1 0000000000000000 100 0 0 10 0\n"), uint16(10248))
	f.Add([]byte(header+"   0: 0100007F:2808 00000000:0000 0A"), uint16(10248))
	f.Add([]byte(header+"   0: : : 0A 4 5 6 7 8 9\n"), uint16(0))
	f.Fuzz(func(t *testing.T, table []byte, port uint16) {
		path := filepath.Join(t.TempDir(), "tcp")
		if err := os.WriteFile(path, table, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, l := range listeners(path, port) {
			if l.socket == "socket:[]" || !l.address.IsValid() {
				t.Errorf("%+v", l)
			}
		}
	})
}

func FuzzSender(f *testing.F) {
	f.Add(unix.UnixCredentials(&unix.Ucred{Pid: 7, Uid: 1, Gid: 2}))
	f.Add(unix.UnixRights(1, 2))
	f.Add(unix.UnixCredentials(&unix.Ucred{Pid: 7})[:20])
	f.Fuzz(func(t *testing.T, control []byte) {
		if pid, known := sender(control); !known && pid != 0 {
			t.Errorf("pid %d of nobody", pid)
		}
	})
}
