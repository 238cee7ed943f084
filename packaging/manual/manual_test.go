package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestWriteFiles(t *testing.T) {
	root := &cobra.Command{Use: "mend", Short: "Mend things"}
	one := &cobra.Command{Use: "one THING", Short: "Mend one", Long: "Mend one thing.\n\n  as it is\n\n.dots are no requests", Example: "  mend one cup", Run: func(*cobra.Command, []string) {}}
	one.Flags().StringP("glue", "g", "wood", "which `kind` to take")
	one.Flags().Bool("secret", false, "not shown")
	_ = one.Flags().MarkHidden("secret")
	root.AddCommand(one, &cobra.Command{Use: "hidden", Hidden: true, Run: func(*cobra.Command, []string) {}})
	folder := t.TempDir()
	if err := (Book{Root: root, Section: 1, Title: "Mending", Also: []string{"glue-gun(7)"}}).WriteFiles(folder); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]string{
		"man/mend.1": {`.TH MEND 1 "" "kubelet-supervisor" "Mending"`, "mend \\- Mend things", ".SH COMMANDS", "\\fBone\\fR\nMend one", "\\fBmend\\-one\\fR(1)", "\\fBglue\\-gun\\fR(7)"},
		"man/mend-one.1": {".TH MEND\\-ONE 1", "\\fBmend one THING [flags]\\fR", ".nf\n  as it is\n.fi", "\\&.dots", "\\fB\\-g, \\-\\-glue=kind\\fR\nwhich kind to take (default: wood)",
			".SH EXAMPLES", "mend one cup", "\\fBmend\\fR(1)"},
		"completion/bash": {"mend"}, "completion/zsh": {"#compdef mend"}, "completion/fish": {"mend"},
	} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		rest := string(text)
		for _, words := range want {
			_, after, found := strings.Cut(rest, words)
			if !found {
				t.Errorf("%s does not say %q, or not in this order:\n%s", file, words, text)
			}
			rest = after
		}
		if strings.Contains(string(text), "not shown") {
			t.Errorf("%s tells of what is hidden", file)
		}
	}
	pages, err := filepath.Glob(folder + "/man/*")
	if err != nil || len(pages) != 3 {
		t.Errorf("%v, %v: want pages for mend, one and completion", pages, err)
	}
}

func TestRoffTakesNothingForARequest(t *testing.T) {
	if got := roff(".a-b\n'c\\d"); got != "\\&.a\\-b\n\\&'c\\ed" {
		t.Errorf("%q", got)
	}
}
