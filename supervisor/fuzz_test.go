package supervisor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
)

// Whatever was decoded from the state folder, the core comes to a decision and shows something.
func FuzzStateOnDisk(f *testing.F) {
	trial, err := json.Marshal(golden())
	if err != nil {
		f.Fatal(err)
	}
	rejected, err := json.Marshal(rejections{golden().Rejected})
	if err != nil {
		f.Fatal(err)
	}
	preflight, err := json.Marshal(proofs{golden().Proofs})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(trial, rejected, preflight)
	f.Add([]byte(`{"trial":{"content":"x","tries":9223372036854775807,"open":true,"healthy":"2562047h"},"active":{}}`), []byte(`{"rejections":null}`), []byte(`{"proofs":[{}]}`))
	f.Fuzz(func(t *testing.T, trial, rejected, preflight []byte) {
		disk := Durable{Assigned: golden().Assigned, LastKnownGood: version("other", "1", "other")}
		var r rejections
		var p proofs
		for data, into := range map[string]any{string(trial): &disk, string(rejected): &r, string(preflight): &p} {
			if json.Unmarshal([]byte(data), into) != nil {
				return
			}
		}
		disk.Rejected, disk.Proofs = r.Rejections, p.Proofs
		d := newDrive(t)
		d.disk = disk
		d.boot().pass(time.Hour)
		if !d.s.Child.Alive {
			t.Errorf("no kubelet runs: %s", d.shown())
		}
		shown, due := report(d.s)
		if !due || shown.Reason == "" || !utf8.ValidString(shown.Reason) {
			t.Errorf("shows %+v", shown)
		}
	})
}

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
		inodes := map[string]bool{}
		listeners(path, uint64(port), inodes)
		if inodes[""] {
			t.Error("an empty inode")
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

func FuzzCertificateName(f *testing.F) {
	certificate, key := clientCertificate(f, "system:node:n1")
	f.Add(certificate, key)
	f.Add(certificate[:100], key)
	f.Add([]byte(nil), []byte(nil))
	f.Fuzz(func(_ *testing.T, certificate, key []byte) {
		certificateName(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificate, KeyData: key}})
	})
}
