package plugin

import (
	"fmt"
	"strings"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/thief"
)

func warningHeader(t *testing.T, text string) string {
	t.Helper()
	header, err := utilnet.NewWarningHeader(299, "", text)
	if err != nil {
		t.Fatal(err)
	}
	return header
}

// What the API server warns of is printed by every command that asks it, once, as a short line of characters that show (rule 28).
func TestEveryCommandPrintsWarnings(t *testing.T) {
	api := newStub(t, hostileObjects(t)...)
	api.warns = []string{warningHeader(t, "this pool \u202eselects by a label"), warningHeader(t, "it is "+strings.Repeat("long ", 20_000))}
	d := newDesk(t, api.URL, thief.Users["token"])
	for _, row := range commandLines {
		if offline[row.line] {
			continue
		}
		api.behind(honest(t))
		_, said := d.run(row.line)
		if got := strings.Count(said, "Warning: this pool  selects by a label\n"); got != 1 {
			t.Errorf("%s: the warning is printed %d times\n%.2000s", row.line, got, said)
		}
		if problem := unprintable(said, printsWhole[row.line]); problem != "" {
			t.Errorf("%s: %s", row.line, problem)
		}
	}
}

// A flood of warnings ends.
func TestWarningsAreBounded(t *testing.T) {
	var notes []string
	w := &cmdutil.Warnings{Note: func(format string, values ...any) { notes = append(notes, fmt.Sprintf(format, values...)) }}
	for i := range 100 {
		w.HandleWarningHeaderWithContext(t.Context(), 299, "", fmt.Sprint(i))
	}
	w.HandleWarningHeaderWithContext(t.Context(), 199, "", "of another code")
	if len(notes) != cmdutil.MaxWarnings+1 || !strings.HasSuffix(notes[cmdutil.MaxWarnings], "not shown") {
		t.Errorf("it notes %d: %q", len(notes), notes)
	}
}
