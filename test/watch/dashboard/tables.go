//go:build linux

package dashboard

import (
	"fmt"
	"strings"
	"time"
)

// Queries is a table of what the queries answered, in Markdown.
func (l *Looked) Queries() string {
	var text strings.Builder
	text.WriteString("| panel | query | series | most |\n|---|---|---|---|\n")
	for _, p := range l.panels {
		for _, a := range p.answers {
			most := "never an answer"
			if len(a.series) > 0 {
				most = fmt.Sprintf("%.3g", a.most())
			}
			_, _ = fmt.Fprintf(&text, "| %s | `%s` | %d | %s |\n", p.Title, strings.ReplaceAll(a.expr, "|", `\|`), len(a.series), most)
		}
	}
	return text.String()
}

// Rules says how many rules there are, and which alerts were seen, in Markdown.
func (l *Looked) Rules() string {
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "Of %d rules %d were evaluated. These alerts were seen:\n\n| alert | state | most at once | minutes in all |\n|---|---|---|---|\n", l.rules, l.rules-l.failed)
	for _, a := range l.alerts {
		_, _ = fmt.Fprintf(&text, "| %s | %s | %d | %s |\n", a.name, a.state, a.most, Clock(a.lasted))
	}
	return text.String()
}

// Clock writes minutes and seconds.
func Clock(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}
