package v1alpha1

import (
	"regexp"
	"strings"
)

// IsSchedule reports whether the definitions of KubeletPool and KubeletRolloutBudget accept a text as a schedule. Parsers of cron accept more, such
// as tabs, a sign before a number, or a list that ends with a comma.
func IsSchedule(text string) bool { return schedulePattern.MatchString(text) }

// schedulePattern is the pattern of Window.Schedule, built from its parts. The names of days and months are ASCII, and (?i) also accepts ſ as s.
var schedulePattern = func() *regexp.Regexp {
	field := func(value string) string {
		item := "([*?]|" + value + "(-" + value + ")?)(/[1-9][0-9]?)?"
		return item + "(," + item + ")*"
	}
	fields := []string{field("[0-5]?[0-9]"), field("([01]?[0-9]|2[0-3])"), field("(0?[1-9]|[12][0-9]|3[01])"),
		field("(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|(?-i:[sS])ep|oct|nov|dec)"), field("(0?[0-6]|(?-i:[sS])(un|at)|mon|tue|wed|thu|fri)")}
	return regexp.MustCompile("^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|(?i:" + strings.Join(fields, " +") + "))$")
}()
