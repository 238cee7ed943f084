//go:build linux

package cli

import (
	"strings"
	"testing"
)

// What the text of a script says of the kubelet it starts. The scripts are in the manner of public ones.
func TestScriptsThatStartAKubelet(t *testing.T) {
	const good = ""
	for name, test := range map[string]struct{ script, refused string }{
		"hands its arguments on":         {`exec /usr/bin/kubelet --v=2 "$@"`, good},
		"all in one word":                {`exec /usr/bin/kubelet $*`, good},
		"without the first":              {"shift\nexec /usr/bin/kubelet \"${@}\"", good},
		"openSUSE's loader":              {"KUBELET_VER=$(sed -n 's/^VER=//p' /etc/sysconfig/kubelet)\nif [ -z \"$KUBELET_VER\" ]; then\n  echo \"$(basename \"$0\"): none\" >&2\n  exit 1\nfi\nexec \"/usr/bin/kubelet${KUBELET_VER}\" \"$@\"", good},
		"a log first":                    {"exec >>/var/log/kubelet.log 2>&1\nexec /usr/bin/kubelet \"$@\"", good},
		"its output to a program":        {`exec /usr/bin/kubelet "$@" > >(logger -t kubelet) 2>&1`, good},
		"a program that becomes it":      {`exec env GODEBUG=x taskset -c 0-3 /usr/bin/kubelet "$@"`, good},
		"one that ignores a signal":      {`exec nohup /usr/bin/kubelet "$@"`, good},
		"one that gives it a log":        {`exec systemd-cat --identifier=kubelet /usr/bin/kubelet "$@"`, good},
		"a shift, which is no document":  {"size=$((1 << 20))\n(( more = (size << bits) + 1 ))\nexec /usr/bin/kubelet \"$@\"", good},
		"a shift and a document":         {"cat $((1 << 2)) <<EOF\nexec it's \"quoted\nEOF\nexec /usr/bin/kubelet \"$@\"", good},
		"another name":                   {`exec -a kubelet /opt/kubelet "$@"`, good},
		"within if":                      {"if [ -e /etc/x ]; then exec /opt/kubelet \"$@\"; else exec /usr/bin/kubelet \"$@\"; fi", good},
		"within case":                    {"case \"$1\" in\n  --version) exec /usr/bin/kubelet --version ;;\n  *) exec /usr/bin/kubelet \"$@\" ;;\nesac", good},
		"in a function":                  {"main() {\n  exec /usr/bin/kubelet \"$@\"\n}\nmain \"$@\"", good},
		"over lines":                     {"exec /usr/bin/kubelet \\\n  --v=2 \\\n  \"$@\"", good},
		"its path in a variable":         {"BIN=/opt/bin/$(uname -m)\nexec \"$BIN\" \"$@\"", good},
		"its arguments in a variable":    {"args=(\"$@\")\nargs+=(--v=2)\nexec /usr/bin/kubelet \"${args[@]}\"", good},
		"a --config before":              {`exec /usr/bin/kubelet --config=/etc/k.yaml "$@"`, good},
		"a --config-dir behind":          {`exec /usr/bin/kubelet "$@" --config-dir=/etc/k.d`, good},
		"a word for a person":            {"cat <<EOF\nexec it's \"quoted\nEOF\necho 'usage: $@ --config=x'\nexec /usr/bin/kubelet \"$@\" # --config=no", good},
		"in a language that is not read": {"", good},

		"no arguments":                      {`exec /usr/bin/kubelet --config=/etc/k.yaml --kubeconfig=/etc/k.conf`, "does not hand on its arguments"},
		"variables, but none of its own":    {"C=/etc/k.yaml\nexec /usr/bin/kubelet --config=$C", "does not hand on its arguments"},
		"arguments for another program":     {"logger \"$@\"\nexec /usr/bin/kubelet --v=2", "does not hand on its arguments"},
		"arguments in a comment":            {"# \"$@\"\nexec /usr/bin/kubelet --v=2", "does not hand on its arguments"},
		"a --config behind":                 {`exec /usr/bin/kubelet "$@" --config=/etc/k.yaml`, "a --config after its own arguments"},
		"a --config and its file":           {`exec /usr/bin/kubelet "$@" --v=2 --config /etc/k.yaml`, "a --config after its own arguments"},
		"a --config in a variable behind":   {"EXTRA=\"--v=2 --config=/etc/k.yaml\"\nexec /usr/bin/kubelet \"$@\" $EXTRA", "a --config after its own arguments"},
		"a --config put behind before":      {"set -- \"$@\" --config=/etc/k.yaml\nexec /usr/bin/kubelet \"$@\"", "a --config after its own arguments"},
		"no exec":                           {`/usr/bin/kubelet "$@"`, "does not become the kubelet"},
		"exec in a comment":                 {"# exec\n/usr/bin/kubelet \"$@\"", "does not become the kubelet"},
		"exec with a redirection alone":     {"exec >>/var/log/kubelet.log 2>&1\n/usr/bin/kubelet \"$@\"", "does not become the kubelet"},
		"and one for all of its output":     {"exec &>/var/log/kubelet.log\n/usr/bin/kubelet \"$@\"", "does not become the kubelet"},
		"exec as a word of another program": {"docker exec etcd true\n/usr/bin/kubelet \"$@\"", "does not become the kubelet"},
		"in a pipeline":                     {`exec /usr/bin/kubelet "$@" 2>&1 | tee /var/log/kubelet.log`, "does not become the kubelet"},
		"in the background":                 {"exec /usr/bin/kubelet \"$@\" &\nwait", "does not become the kubelet"},
		"in a subshell":                     {`(cd / && exec /usr/bin/kubelet "$@")`, "does not become the kubelet"},
		"docker":                            {`exec /usr/bin/docker run --privileged k8s/hyperkube kubelet "$@"`, "becomes /usr/bin/docker and not the kubelet"},
		"rkt, as CoreOS had it":             {"RKT=\"${RKT:-/usr/bin/rkt}\"\nexec /usr/bin/rkt run ${RKT_OPTS} docker://k8s/hyperkube --exec=/hyperkube -- kubelet \"$@\"", "becomes /usr/bin/rkt and not the kubelet"},
		"another root":                      {`exec chroot /host /usr/bin/kubelet "$@"`, "becomes chroot and not the kubelet"},
		"hyperkube":                         {`exec /hyperkube kubelet "$@"`, "becomes /hyperkube and not the kubelet"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "#!/bin/bash\nset -eu\n" + test.script + "\n"
			if name == "in a language that is not read" {
				text = "#!/usr/bin/python3\nimport os, sys\nos.execv('/usr/bin/kubelet', sys.argv)\n"
			}
			err := checkScript(text)
			if test.refused == "" && err != nil || test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("%v, want %q", err, test.refused)
			}
		})
	}
}

func FuzzCheckScript(f *testing.F) {
	f.Add("#!/bin/sh\nexec kubelet \"$@\" | (cat <<X)\nX\n${a`b`}")
	f.Add("#!/bin/sh\n'\"\\")
	f.Fuzz(func(_ *testing.T, text string) {
		_ = checkScript(text)
		_ = checkScript("#!/bin/sh\n" + text)
	})
}
