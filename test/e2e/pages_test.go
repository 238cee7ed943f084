//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

// pushed is a ConfigMap that was just made; a page calls it NAME-HASH.
var pushed = regexp.MustCompile(`\bconfigmap/([a-z-]+)-([bcdfghjklmnpqrstvwxz2456789]{10}) created`)

// The commands of all pages that are for kubectl do what they are said to do: each page is typed on a supervised node of its own, and
// where the page shows an answer, that is the answer.
func TestPages(t *testing.T)     { typePages(t, isRead) }
func TestLongPages(t *testing.T) { typePages(t, func(name string) bool { return !isRead(name) }) }

// isRead tells whether make test types the page: the README, what is read at night, and the pages that most of all read.
func isRead(name string) bool {
	return name == "README.md" || strings.HasPrefix(name, "docs/operate/") || name == "docs/howto/assign.md" || name == "docs/howto/layers.md"
}

// poolPages are typed in test/fleet, where there is a controller.
var poolPages = []string{"docs/howto/pools.md", "docs/operate/pools.md", "docs/reference/pool.md"}

func typePages(t *testing.T, typed func(page string) bool) {
	found, err := pages.Of("../..", false, append(poolPages, operatingPage)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBE_EDITOR", `sed -i 's/^maxPods: .*/maxPods: 31/'`) // what a reader does by hand
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if typed(name) {
			t.Run(name, func(t *testing.T) { typePage(t, name, found[name]) })
		}
	}
}

func typePage(t *testing.T, name string, commands []pages.Command) {
	n := pluginNode(t)
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	trial := "10m"
	if strings.Contains(string(text), "--until=good") {
		trial = "3s" // the page waits for its end
	}
	n.startedLocal(t, options{Flags: []string{"--trial-period=" + trial}})
	p := &page{node: n, folder: n.deskFor(t), names: map[string]string{}}
	hashes := map[string]string{}
	for _, c := range commands {
		for of, is := range hashes {
			c.Line = strings.ReplaceAll(c.Line, of, is)
		}
		n.awaitNode(t, "the Node is Ready", func(v nodeView) bool { return v.Ready })
		output, err := n.typed(t, p.folder, c.Line)
		if match := pushed.FindStringSubmatch(output); match != nil {
			hashes[match[1]+"-HASH"] = match[1] + "-" + match[2]
		}
		want, got := p.bare(c.Answer), p.bare(output)
		for of, is := range hashes {
			got = strings.ReplaceAll(got, is, of)
		}
		switch {
		case c.Answer != "" && !pages.Answers(want, got):
			t.Fatalf("$ %s\nthe page says\n%s\nand the answer is\n%s", c.Line, want, got)
		case c.Answer == "" && err != nil:
			t.Fatalf("$ %s\n%v: %s", c.Line, err, output)
		}
	}
}

var ended = regexp.MustCompile(`\(exit ([0-9]+)\)\n$`)

// typed is what shell does, and tells how the command ended.
func (n *node) typed(t *testing.T, folder, line string) (string, error) {
	t.Helper()
	output := n.shell(t, folder, "{ "+line+"\n} || echo \"(exit $?)\"")
	code := ended.FindStringSubmatch(output)
	if code == nil {
		return output, nil
	}
	return strings.TrimSuffix(output, code[0]), fmt.Errorf("exit code %s", code[1])
}
