//go:build systemd

package systemd

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

// The commands of all pages that are for root on a node do what they are said to do: each page is typed on a machine of its own, as
// kubeadm leaves it, with the package's file at hand. Commands of which the page shows an answer may end as they like, with that answer.
func TestPages(t *testing.T) {
	found, err := pages.Of("../..", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			t.Parallel()
			onEachSystemd(t, func(t *testing.T, m *machine) { m.typePage(found[name]) })
		})
	}
}

func (m *machine) typePage(commands []pages.Command) {
	m.Helper()
	m.joined()
	m.must("cp /shared/old/*.deb /root/")
	for _, c := range commands {
		output, err := m.try("%s", "cd /root && "+c.Line)
		m.Logf("# %s\n%s", c.Line, output)
		switch {
		case c.Answer == "" && err != nil:
			m.Fatalf("# %s\n%v: %s", c.Line, err, output)
		case c.Answer != "" && !pages.Answers(c.Answer, output+"\n"):
			m.Fatalf("# %s\nthe page says\n%s\nand the answer is\n%s", c.Line, c.Answer, output)
		}
	}
}

// typed pages are few without this: a page that loses its last command for a node is noticed.
func TestPagesAreTyped(t *testing.T) {
	found, err := pages.Of("../..", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "docs/reference/install.md"} {
		if _, err := os.Stat("../../" + name); err != nil || found[name] == nil {
			t.Errorf("%s has no command that is typed on a node: %v", name, err)
		}
	}
}
