package plugin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func TestConventions(t *testing.T) {
	b := newBench(t, localNode("n1"))
	for _, test := range []struct {
		arguments []string
		code      int
		stdout    string
		stderr    string
	}{
		{[]string{"stauts"}, 1, "", "Did you mean this? status"},
		{[]string{"status", "--no-such"}, 1, "", "unknown flag: --no-such; see kubectl kubelet status --help"},
		{[]string{"diff", "n1", "--no-such"}, 2, "", "unknown flag"},
		{[]string{"options"}, 0, "--kubeconfig", ""},
		{[]string{"options"}, 0, "-v, --v", ""},
		{[]string{"version"}, 0, "kubectl-kubelet test (go", ""},
		{[]string{"--version"}, 0, "test\n", ""},
		{[]string{"status", "-v=0"}, 0, "n1", ""},
		{[]string{"status", "-v=much"}, 1, "", `invalid argument "much"`},
	} {
		code, stdout, stderr := b.run(t, test.arguments...)
		if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) {
			t.Errorf("%v: exit code %d, want %d, %q and %q\n%s%s", test.arguments, code, test.code, test.stdout, test.stderr, stdout, stderr)
		}
	}
}

// What a shell offers after a press of the tab key.
func TestCompletion(t *testing.T) {
	b := newBench(t, localNode("n1"), localNode("n2"), localNode("other"), configMapOf("workers", someConfig), configMapOf("edge", someConfig))
	for _, test := range []struct {
		words []string
		want  []string
	}{
		{[]string{"status", "n"}, []string{"n1", "n2"}},
		{[]string{"assign", "n1", ""}, []string{"n2", "other"}},
		{[]string{"assign", "-l", "po"}, []string{"pool=workers"}},
		{[]string{"assign", "-l", "a=b,po"}, []string{"a=b,pool=workers"}},
		{[]string{"status", "--selector", ""}, []string{"pool=workers"}},
		{[]string{"assign", "n1", "--config", "kubelet-config/w"}, []string{"kubelet-config/workers"}},
		{[]string{"push", "x", "--edit", "o"}, []string{"other"}},
		{[]string{"reset", "n1", "--dry-run", ""}, []string{"none", "client", "server"}},
		{[]string{"assign", "n1", "--until", ""}, []string{"active", "good"}},
	} {
		stdout, _ := b.do(t, append([]string{"__complete"}, test.words...)...)
		got := strings.Fields(stdout)
		if len(got) > 0 {
			got = got[:len(got)-1] // the directive
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.words, got, test.want)
		}
	}
}

// Nodes are listed in chunks, and all of them are there.
func TestListsInChunks(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if r.URL.Query().Get("limit") != "500" {
			t.Errorf("asked for %s", r.URL)
		}
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		for i := from; i < min(from+500, 1201); i++ {
			list.Items = append(list.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%04d", i)}})
		}
		if from+500 < 1201 {
			list.Continue = strconv.Itoa(from + 500)
		}
		body, err := utiljson.Marshal(list)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	defer server.Close()
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
	views, err := view.Selection{}.Nodes(t.Context(), client)
	if err != nil || len(views) != 1201 || requests != 3 || views[1200].Name != "n1200" {
		t.Errorf("%v, %d nodes by %d requests, want 1201 by 3", err, len(views), requests)
	}
}

// A signal ends a question, though nobody answers it.
func TestConfirmIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		b := newBench(t)
		hang := make(chan struct{})
		b.factory.In = readerFunc(func([]byte) (int, error) {
			<-hang
			return 0, fmt.Errorf("closed")
		})
		var out lockedBuffer
		b.factory.ErrOut = &out
		go interrupt()
		if code := execute(ctx, b.factory, []string{"install"}, "test"); code != 1 {
			t.Errorf("exit code %d", code)
		}
		contains(t, out.buffer.String(), "Install these? [y/N]", "error: nothing was changed; it was interrupted")
		close(hang)
	})
}

type readerFunc func([]byte) (int, error)

func (r readerFunc) Read(p []byte) (int, error) { return r(p) }
