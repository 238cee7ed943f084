//go:build linux

package supervisor

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

const (
	nodeOne = "system:node:n1"
	past    = -time.Minute
	future  = time.Hour
)

// someKubeconfig has these lines about its user.
func someKubeconfig(user string) string {
	return "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://127.0.0.1:1\"}}]\n" +
		"contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\nusers:\n- name: u\n  user: {" + user + "}\n"
}

// inline is a user whose certificate lasts so long.
func inline(t *testing.T, commonName string, lasts time.Duration) string {
	certificate, key := certificateUntil(t, commonName, time.Now().Add(lasts))
	text := base64.StdEncoding.EncodeToString
	return "client-certificate-data: " + text(certificate) + ", client-key-data: " + text(key)
}

// kept is the file in which a kubelet keeps its certificate, with the key.
func kept(t *testing.T, folder, commonName string, lasts time.Duration) {
	certificate, key := certificateUntil(t, commonName, time.Now().Add(lasts))
	written(t, folder, currentCertificate, string(certificate)+string(key))
}

// A kubelet that starts needs a credential: from its kubeconfig, its own folder or its bootstrap kubeconfig. Whether it has one is told by the same
// rules as it has (LoadClientConfig and isClientConfigStillValid of pkg/kubelet/certificate/bootstrap).
func TestCredentialObstacle(t *testing.T) {
	for name, row := range map[string]struct {
		user      func(t *testing.T, folder string) string // "" = there is no kubeconfig
		bootstrap string                                   // the same; "-" = the flag is not given
		kept      time.Duration                            // of the kubelet's certificate; 0 = there is none
		keptName  string
		rotates   bool
		want      string // is in it; "" = nothing is in the way
	}{
		"a valid certificate": {user: lasts(future), bootstrap: "-"},
		"a valid certificate, and a bootstrap kubeconfig that is gone": {user: lasts(future)},
		"expired": {user: lasts(past), bootstrap: "-", want: "has a client certificate that expired on 20"},
		"expired, and nothing renews the kept one": {user: lasts(past), bootstrap: "-", kept: future, want: "expired on"},
		"expired, and the kubelet keeps one":       {user: lasts(past), bootstrap: "-", kept: future, rotates: true},
		"expired, and so is the kept one":          {user: lasts(past), bootstrap: "-", kept: past, rotates: true, want: "expired on"},
		"expired, and the kept one is another's":   {user: lasts(past), bootstrap: "-", kept: future, keptName: "system:node:n2", rotates: true, want: "expired on"},
		"expired, and there is no bootstrap kubeconfig": {user: lasts(past), kept: future, rotates: true,
			want: "expired on"},
		"the words of that":                              {user: lasts(past), want: "bootstrap.conf does not exist"},
		"expired, and it bootstraps anew":                {user: lasts(past), bootstrap: "token: abc"},
		"expired, and its bootstrap token file is empty": {user: lasts(past), bootstrap: "tokenFile: FOLDER/empty", want: "bootstrap kubeconfig"},
		"it joins":       {bootstrap: "token: abc"},
		"it cannot join": {want: "kubelet.conf does not exist"},
		"no kubeconfig, and nothing to bootstrap with": {bootstrap: "-", want: "kubelet.conf does not exist"},
		"a token": {user: is("token: abc"), bootstrap: "-"},
		"a token, and a bootstrap kubeconfig that is gone": {user: is("token: abc"), want: "has no client certificate"},
		"a token file":                    {user: is("tokenFile: FOLDER/token"), bootstrap: "-"},
		"an empty token file":             {user: is("tokenFile: FOLDER/empty"), bootstrap: "-", want: "FOLDER/empty, which is empty"},
		"a token file that is gone":       {user: is("tokenFile: FOLDER/gone"), bootstrap: "-", want: "cannot be used"},
		"a certificate file that is gone": {user: is("client-certificate: FOLDER/gone, client-key: FOLDER/gone"), bootstrap: "-", want: "cannot be used"},
		"the kept one is named and has expired": {user: is("client-certificate: FOLDER/pki/kubelet-client-current.pem, client-key: FOLDER/pki/kubelet-client-current.pem"),
			bootstrap: "-", kept: past, rotates: true, want: "expired on"},
		"a relative path":                      {user: is("client-certificate: pki/kubelet-client-current.pem, client-key: pki/kubelet-client-current.pem"), bootstrap: "-", kept: future},
		"a pipe, which nobody can read twice":  {user: is("PIPE"), bootstrap: "-"},
		"a token that comes by a pipe":         {user: is("tokenFile: FOLDER/pipe"), bootstrap: "-"},
		"an exec plugin":                       {user: is("exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}"), bootstrap: "-"},
		"no kubeconfig at all, as it is meant": {bootstrap: "-", keptName: "standalone"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			at := func(text string) string { return strings.ReplaceAll(text, "FOLDER", folder) }
			written(t, folder, "token", "abc\n")
			written(t, folder, "empty", "\n")
			pipe := filepath.Join(folder, "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			a := commandline.Arguments{Kubeconfig: filepath.Join(folder, "kubelet.conf"), CertDir: filepath.Join(folder, "pki")}
			if row.kept != 0 {
				name := row.keptName
				if name == "" {
					name = nodeOne
				}
				kept(t, a.CertDir, name, row.kept)
			}
			if row.user != nil {
				written(t, folder, "kubelet.conf", someKubeconfig(at(row.user(t, folder))))
			}
			if strings.HasPrefix(name, "a pipe") {
				a.Kubeconfig = pipe
			}
			if row.bootstrap != "-" {
				a.BootstrapKubeconfig = filepath.Join(folder, "bootstrap.conf")
				if row.bootstrap != "" {
					written(t, folder, "bootstrap.conf", someKubeconfig(at(row.bootstrap)))
				}
			}
			if row.keptName == "standalone" {
				a.Kubeconfig = ""
			}
			got := credentialObstacle(a, row.rotates, time.Now())
			if (got == "") != (row.want == "") || !strings.Contains(got, at(row.want)) {
				t.Errorf("got %q, want %q", got, at(row.want))
			}
		})
	}
}

func lasts(d time.Duration) func(*testing.T, string) string {
	return func(t *testing.T, _ string) string { return inline(t, nodeOne, d) }
}

func is(user string) func(*testing.T, string) string {
	return func(*testing.T, string) string { return user }
}

// The supervisor has the kubelet's credential: once that of the kubeconfig has expired, it is the one that the kubelet keeps.
func TestTheKubeletsCertificateIsUsed(t *testing.T) {
	for name, row := range map[string]struct {
		own, kept time.Duration // 0 = there is none
		keptName  string
		uses      bool
		atMost    time.Duration // until the next look; 0 = endless
	}{
		"its own is valid":             {future, future, nodeOne, false, time.Hour},
		"its own has expired":          {past, future, nodeOne, true, credentialRecheck},
		"both have":                    {past, past, nodeOne, false, credentialRecheck},
		"the kubelet keeps none":       {past, 0, "", false, credentialRecheck},
		"the kept one is another's":    {past, future, "system:node:n2", false, credentialRecheck},
		"it has none":                  {0, future, nodeOne, false, 0},
		"its own expires in a moment":  {5 * time.Second, future, nodeOne, false, 6 * time.Second},
		"its own lasts longer than us": {24 * time.Hour, future, nodeOne, false, credentialRecheckMax},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			user := "token: abc"
			if row.own != 0 {
				user = inline(t, nodeOne, row.own)
			}
			path := written(t, folder, "kubelet.conf", someKubeconfig(user))
			if row.kept != 0 {
				kept(t, folder, row.keptName, row.kept)
			}
			l := &inputs{arguments: commandline.Arguments{CertDir: folder}}
			used, atMost := (&apiSession{inputs: l}).credential(path)
			if want := map[bool]string{true: filepath.Join(folder, currentCertificate)}[row.uses]; used != want {
				t.Errorf("it uses %q, want %q", used, want)
			}
			if off := row.atMost - atMost; off < 0 || off > 5*time.Second || (row.atMost == 0) != (atMost == 0) {
				t.Errorf("it looks again after %s, want %s", atMost, row.atMost)
			}
			settings, err := readKubeconfig(path)
			if err != nil {
				t.Fatal(err)
			}
			preferKubelets(settings, l.arguments, time.Now())
			if isKept := settings.CertFile != ""; isKept != row.uses || isKept && len(settings.CertData)+len(settings.KeyData) > 0 {
				t.Errorf("the settings are %+v", settings.TLSClientConfig)
			}
			if _, name, err := connect(path, "", l.arguments, nil); row.own != 0 && (err != nil || name != "n1") {
				t.Errorf("the Node is %q, %v", name, err)
			}
		})
	}
}
