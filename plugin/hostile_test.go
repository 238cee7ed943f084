package plugin

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/thief"
)

// commandLines has each command of the plugin, with whether it asks kubelets. A new command is a new line, and so is another way of a command to
// ask a kubelet. FILE is a whole configuration, POOL a pool.
var commandLines = []struct {
	line string
	asks bool
}{
	{"config n1", true},
	{"config n1 --changed -o json", true},
	{"push made -f FILE", false},
	{"push made --edit n1 --yes", true},
	{"push made -f FILE --against n1", true},
	{"assign n1 --config wanted --yes --wait=false", true},
	{"assign -l pool=workers --config wanted --dry-run=server --yes", true},
	{"reset n1 --yes --wait=false", false},
	{"retry n1 --yes --wait=false", false},
	{"rollback n1 --to wanted --yes --wait=false", true},
	{"status", false},
	{"status -o wide", false},
	{"describe n1", false},
	{"diff n1", true},
	{"diff n1 --config wanted", true},
	{"explain n1 maxPods", true},
	{"explain n1 --all -o json", true},
	{"check n1 -f FILE", true},
	{"check -l pool=workers --config wanted", true},
	{"history n1", false},
	{"doctor n1 --answer-timeout=0s", true},
	{"doctor --all", false},
	{"rollout", false},
	{"rollout status workers --watch=false", false},
	{"rollout history workers", false},
	{"rollout undo workers --to-local --yes", false},
	{"rollout pause workers", false},
	{"rollout resume workers", false},
	{"rollout unpin workers", false},
	{"rollout retry workers", false},
	{"rollout adopt n1", false},
	{"rollout release n1", false},
	{"pool", false},
	{"pool diff workers -f POOL", false},
	{"install --yes", false},
	{"prune --yes", false},
	{"package-files FOLDER", false},
	{"options", false},
	{"version", false},
	{"", false},
}

// offline are the commands that ask nobody.
var offline = map[string]bool{"": true, "rollout": true, "pool": true, "package-files FOLDER": true, "options": true, "version": true}

// Every command of the plugin has a line.
func TestEveryCommandHasALine(t *testing.T) {
	root := newRoot(newBench(t).factory, "test")
	has := map[*cobra.Command]bool{}
	for _, row := range commandLines {
		command, _, err := root.Find(strings.Fields(row.line))
		if err != nil {
			t.Errorf("%s: %v", row.line, err)
		}
		has[command] = true
	}
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		if command.Runnable() && !has[command] {
			t.Errorf("%s has no line: add one, which says whether it asks kubelets", command.CommandPath())
		}
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(root)
}

// A desk is where lines are typed, each in a process of its own as it were, with a kubeconfig of a real API server.
type desk struct {
	t          *testing.T
	kubeconfig string
	words      *strings.Replacer
	patience   time.Duration // with one kubelet
}

func newDesk(t *testing.T, server, user string) *desk {
	t.Helper()
	folder := t.TempDir()
	pool := filepath.Join(folder, "pool.yaml")
	if err := os.WriteFile(pool, []byte("apiVersion: kubelet-supervisor.io/v1alpha1\nkind: KubeletPool\nmetadata: {name: workers}\n"+poolSpec+
		"  - {name: fleet, inline: {maxPods: 60}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &desk{t, thief.Kubeconfig(t, server, user), strings.NewReplacer("FILE", writtenFile(t, "maxPods: 43\n"), "POOL", pool, "FOLDER", filepath.Join(folder, "package")), 5 * time.Second}
}

// run types a line, and gives what it says.
func (d *desk) run(line string) (code int, said string) {
	d.t.Helper()
	var output lockedBuffer
	f := cmdutil.NewFactory(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &output, ErrOut: &output})
	reader := view.NodeReader{Timeout: d.patience, Limit: 1 << 20}
	f.Configz, f.Pods, f.Summary = reader.Configz, reader.Pods, reader.Summary
	f.Now = func() time.Time { return noon }
	f.Edit = func(file string) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(file, append(text, []byte("registryBurst: 77\n")...), 0o600)
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), 30*time.Second)
	defer cancel()
	arguments := append(strings.Fields(d.words.Replace(line)), "--kubeconfig="+d.kubeconfig, "--cache-dir="+d.t.TempDir())
	code = execute(ctx, f, arguments, "test")
	return code, output.buffer.String()
}

// An API server, or what is in front of it, that answers every request with a redirect is given nobody's token by any command.
func TestNoCommandFollowsARedirect(t *testing.T) {
	for who, user := range thief.Users {
		t.Run(who, func(t *testing.T) {
			server := thief.New(t, http.StatusFound)
			d := newDesk(t, server.URL, user)
			for _, row := range commandLines {
				before := server.Asked()
				if code, said := d.run(row.line); (code == 0 || server.Asked() == before) && !offline[row.line] {
					t.Errorf("%s: exit code %d, %d requests\n%s", row.line, code, server.Asked()-before, said)
				}
			}
			server.Expect(t)
		})
	}
}

// hostileObjects are those of a cluster with two nodes and a pool.
func hostileObjects(t *testing.T) []runtime.Object {
	t.Helper()
	p := newFakePool(t, `{"maxPods":110}`, `{"maxPods":250}`)
	active, wanted := configMapOf("active", someConfig), configMapOf("wanted", someConfig+"registryBurst: 33\n")
	n1, n2 := roomy(knowing(assignedNode("n1", active))), roomy(knowing(assignedNode("n2", active)))
	objects := append([]runtime.Object{p.object(t), active, wanted, n1, n2}, p.objects...)
	for i, pod := range runningPods(3) {
		pod.Spec.NodeName = []string{"n1", "n2"}[i%2]
		objects = append(objects, &pod)
	}
	return objects
}

// honest is a kubelet that answers as kubelets do.
func honest(t *testing.T) http.HandlerFunc {
	t.Helper()
	tree, _, _, err := document.Defaults("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	configz, err := json.Marshal(map[string]any{"kubeletconfig": tree})
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/configz") {
			_, _ = w.Write(configz)
			return
		}
		_, _ = w.Write([]byte(`{"node":{"memory":{"availableBytes":8000000000,"workingSetBytes":400000000}}}`))
	}
}

// Which commands ask kubelets is as their lines say.
func TestCommandsThatAskKubelets(t *testing.T) {
	api := newStub(t, hostileObjects(t)...)
	for who, user := range thief.Users {
		d := newDesk(t, api.URL, user)
		for _, row := range commandLines {
			api.behind(honest(t))
			code, said := d.run(row.line)
			asked, proxied := api.heard()
			if proxied > 0 != row.asks || len(asked) == 0 != offline[row.line] {
				t.Errorf("%s: %s: it asks kubelets %d times, and the API server for %v: exit code %d\n%s", who, row.line, proxied, asked, code, said)
			}
		}
	}
}

// A pipeline without nodes/proxy, as the ClusterRole kubelet-supervisor-pipeline has it, pushes and assigns, and is told what it cannot know.
func TestAPipelineWithoutNodesProxy(t *testing.T) {
	api := newStub(t, append(hostileObjects(t), localNode("n3"))...)
	d := newDesk(t, api.URL, thief.Users["token"])
	forbidden := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":` +
			`"nodes \"n1\" is forbidden: User \"ci\" cannot get resource \"nodes/proxy\""}`))
	}
	for line, words := range map[string][]string{
		"push made -f FILE --strict":                                {"created"},
		"push made -f FILE --strict --dry-run=server":               {"(server dry run)"},
		"assign n1 --config wanted --yes --wait=false":              {"registryBurst: 10 → 33", "without flags and drop-in files of the node", "is not known", "node/n1 assigned"},
		"assign n3 --config wanted --yes --wait=false":              {"What would change is not known: its kubelet cannot be asked", "needs get on nodes/proxy", "node/n3 assigned"},
		"assign -l pool=workers --config wanted --yes --wait=false": {"is not known", "node/n1 assigned", "node/n2 assigned"},
	} {
		api.behind(forbidden)
		code, said := d.run(line)
		if code != 0 {
			t.Errorf("%s: exit code %d\n%s", line, code, said)
		}
		contains(t, said, words...)
		if asked, _ := api.heard(); slices.ContainsFunc(asked, func(request string) bool { return strings.HasSuffix(request, "/pods") }) {
			t.Errorf("%s: it asks for pods, which its role does not have: %v", line, asked)
		}
	}
}

// What a hostile kubelet answers reaches nobody's token, asks for nothing with it, and costs neither time nor a terminal.
func TestHostileKubelets(t *testing.T) {
	api := newStub(t, hostileObjects(t)...)
	elsewhere := thief.Listen(t)
	all := hostilities(api.URL, elsewhere)
	for who, user := range thief.Users {
		d := newDesk(t, api.URL, user)
		for line, row := range commandLines {
			if !row.asks {
				continue
			}
			api.behind(honest(t))
			d.patience = 5 * time.Second
			d.run(row.line)
			asked, _ := api.heard()
			for at, kind := range slices.Sorted(maps.Keys(all)) {
				answer := all[kind]
				if !thorough && (line+at)%6 != 0 {
					continue
				}
				if who != "token" && !strings.Contains(kind, " to ") { // how the token came makes a difference to redirects alone
					continue
				}
				name := fmt.Sprintf("%s: %s: %s", who, row.line, kind)
				var code, proxied int
				var said string
				var now []string
				for _, d.patience = range []time.Duration{time.Second / 10, 5 * time.Second} { // a busy machine takes longer to ask
					api.behind(answer)
					begun := time.Now()
					code, said = d.run(row.line)
					if took := time.Since(begun); took > longestRun {
						t.Errorf("%s: it took %s", name, took)
					}
					if now, proxied = api.heard(); proxied > 0 {
						break
					}
				}
				if proxied == 0 || proxied > 6 {
					t.Errorf("%s: kubelets were asked %d times", name, proxied)
				}
				for _, request := range now {
					if strings.Contains(request, "secrets") {
						t.Errorf("%s: the API server was asked for %s, and else for %v", name, request, asked)
					}
				}
				if problem := unprintable(said, printsWhole[row.line]); problem != "" {
					t.Errorf("%s: exit code %d: %s", name, code, problem)
				}
			}
		}
	}
	elsewhere.ExpectSilence(t)
}

// printsWhole are the lines whose result is what the kubelet runs with, as YAML or JSON, however long it is.
var printsWhole = map[string]bool{"config n1": true, "config n1 --changed -o json": true, "explain n1 --all -o json": true}

// unprintable says what must not reach a terminal: control characters, the token, and more than a person reads about two nodes.
func unprintable(said string, whole bool) string {
	most := 32 << 10
	if whole {
		most = 8 << 20
	}
	for at, r := range said {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || !whole && unicode.Is(unicode.Bidi_Control, r) {
			return fmt.Sprintf("it prints %q", said[max(0, at-40):min(len(said), at+40)])
		}
	}
	switch {
	case !utf8.ValidString(said):
		return "it prints no UTF-8"
	case strings.Contains(said, thief.Token):
		return "it prints the token"
	case len(said) > most:
		return fmt.Sprintf("it prints %d bytes, which begin with %.200q", len(said), said)
	}
	return ""
}

// hostilities are what a stolen node's kubelet may answer.
func hostilities(api string, elsewhere *thief.Ear) map[string]http.HandlerFunc {
	all := map[string]http.HandlerFunc{}
	other := strings.TrimPrefix(elsewhere.TLS, "https://")
	for name, location := range map[string]string{
		"another host":                  elsewhere.TLS + "/configz",
		"another host in clear":         elsewhere.Clear + "/configz",
		"another host, no scheme":       "//" + other + "/configz",
		"a user of another host":        "https://admin:admin@" + other + "/configz",
		"a user like the API server":    "https://" + strings.TrimPrefix(api, "https://") + "@" + other + "/configz",
		"the API server in clear":       "http://" + strings.TrimPrefix(api, "https://") + "/api/v1/secrets",
		"the API server":                api + "/api/v1/namespaces/kube-system/secrets",
		"the API server, by its path":   "/api/v1/namespaces/kube-system/secrets",
		"itself":                        "",
		"escapes":                       "\x1b]0;owned\a\x1b[2J",
		"no URL":                        "http://[::1]:namedport/%zz",
		"a scheme that nobody speaks":   "file:///etc/passwd",
		"a target of many bytes":        elsewhere.TLS + "/" + strings.Repeat("a", 100_000),
		"another path of its own proxy": "/api/v1/nodes/n2/proxy/run/default/web/main?cmd=id",
	} {
		for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			all[fmt.Sprintf("%d to %s", code, name)] = func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Location"] = []string{location}
				if location == "" {
					w.Header().Set("Location", r.URL.Path)
				}
				w.WriteHeader(code)
			}
		}
	}
	all["302 to nowhere"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) }
	for name, answer := range floods() {
		all[name] = answer
	}
	for name, body := range lies() {
		all[name] = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
		all["500 with "+name] = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(body))
		}
	}
	return all
}

// floods are answers without an end, or without a beginning.
func floods() map[string]http.HandlerFunc {
	endless := func(w http.ResponseWriter, r *http.Request, beginning, more string) {
		_, _ = w.Write([]byte(beginning))
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat(more, 1<<12))); err != nil {
				return
			}
		}
	}
	return map[string]http.HandlerFunc{
		"silence": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"headers, and silence": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"spaces without end":   func(w http.ResponseWriter, r *http.Request) { endless(w, r, "", " ") },
		"a text without end":   func(w http.ResponseWriter, r *http.Request) { endless(w, r, `{"kubeletconfig":{"a":"`, "a") },
		"a number without end": func(w http.ResponseWriter, r *http.Request) { endless(w, r, `{"kubeletconfig":{"maxPods":1`, "1") },
		"a failure without end": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			endless(w, r, "", "a")
		},
		"hints without end": func(w http.ResponseWriter, r *http.Request) {
			for range 1 << 10 {
				w.Header().Set("Link", strings.Repeat("a", 1<<10))
				if w.WriteHeader(http.StatusEarlyHints); r.Context().Err() != nil {
					return
				}
			}
		},
		"a bomb": func(w http.ResponseWriter, _ *http.Request) {
			var packed bytes.Buffer
			pack := gzip.NewWriter(&packed)
			_, _ = pack.Write(bytes.Repeat([]byte(" "), 8<<20))
			_ = pack.Close()
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed.Bytes())
		},
		"less than it promised": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"kubeletconfig":{}}`))
		},
	}
}

// lies are bodies.
func lies() map[string]string {
	const escape = `\u001b]0;owned\u0007\u001b[2J\u202e\r\n`
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	return map[string]string{
		"nothing":                 "",
		"null":                    "null",
		"no JSON":                 "<html>\x1b[2J",
		"no UTF-8":                "{\"kubeletconfig\":{\"clusterDomain\":\"\xff\xfe\"}}",
		"no object":               `{"kubeletconfig":[1,2]}`,
		"another kind":            `{"kubeproxy":{"a":1}}`,
		"fields of another type":  `{"kubeletconfig":{"maxPods":"many","evictionHard":["a"],"featureGates":"all","clusterDNS":{"a":1},"authentication":7,"syncFrequency":{}}}`,
		"numbers out of bounds":   `{"kubeletconfig":{"maxPods":1e400,"podPidsLimit":-99999999999999999999,"registryBurst":1.5}}`,
		"a number of 500 kB":      `{"kubeletconfig":{"maxPods":` + strings.Repeat("9", 500_000) + `}}`,
		"a text of 500 kB":        `{"kubeletconfig":{"clusterDomain":"` + strings.Repeat("a", 500_000) + `"}}`,
		"a key of 500 kB":         `{"kubeletconfig":{"` + strings.Repeat("a", 500_000) + `":1}}`,
		"30,000 fields":           `{"kubeletconfig":{"maxPods":3` + manyFields(30_000) + `}}`,
		"the depth of 5,000":      `{"kubeletconfig":{"evictionHard":` + deep + `}}`,
		"escapes":                 `{"kubeletconfig":{"maxPods":3,"clusterDomain":"` + escape + `","` + escape + `":"a","evictionHard":{"` + escape + `":"` + escape + `"}}}`,
		"a Status with escapes":   `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"` + escape + `"}`,
		"statistics that are odd": `{"kubeletconfig":{"maxPods":3},"node":{"memory":{"availableBytes":-1,"workingSetBytes":9223372036854775807},"systemContainers":[{"name":"` + escape + `"}]}}`,
	}
}

func manyFields(count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, `,"field%d":%d`, i, i)
	}
	return text.String()
}
