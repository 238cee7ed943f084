package rollout

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// scheduleSchemas are what the definitions of KubeletPool and KubeletRolloutBudget say of spec.…windows[].schedule.
func scheduleSchemas(t testing.TB) (schemas []scheduleSchema) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/manifests/controller/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var tree any
		if err := yaml.Unmarshal([]byte(document), &tree); err != nil {
			t.Fatal(err)
		}
		schemas = append(schemas, findSchedules(t, tree)...)
	}
	if len(schemas) != 2 {
		t.Fatalf("there are %d schedules, and not one of a pool and one of a budget", len(schemas))
	}
	return schemas
}

type scheduleSchema struct {
	pattern           *regexp.Regexp
	shortest, longest int
}

var matchesRule = regexp.MustCompile(`^self\.matches\('([^'\\]*)'\)$`)

func findSchedules(t testing.TB, tree any) (schemas []scheduleSchema) {
	t.Helper()
	switch node := tree.(type) {
	case []any:
		for _, one := range node {
			schemas = append(schemas, findSchedules(t, one)...)
		}
	case map[string]any:
		for key, one := range node {
			field, is := one.(map[string]any)
			if key != "schedule" || !is || field["type"] != "string" {
				schemas = append(schemas, findSchedules(t, one)...)
				continue
			}
			schema := scheduleSchema{shortest: int(field["minLength"].(float64)), longest: int(field["maxLength"].(float64))}
			for _, rule := range field["x-kubernetes-validations"].([]any) {
				switch text := rule.(map[string]any)["rule"].(string); {
				case matchesRule.MatchString(text):
					schema.pattern = regexp.MustCompile(matchesRule.FindStringSubmatch(text)[1])
				case text != "!self.contains('TZ=')": // which the pattern refuses, too
					t.Fatalf("this test does not know the rule %s", text)
				}
			}
			schemas = append(schemas, schema)
		}
	}
	return schemas
}

func (s scheduleSchema) takes(text string) bool {
	n := utf8.RuneCountInString(text)
	return s.pattern.MatchString(text) && n >= s.shortest && n <= s.longest
}

// noPatternKnows are the words of the reader for what only a calendar, or who compares two numbers, can know.
var noPatternKnows = []string{"never comes", "beyond end of range"}

// agree holds the reader and the schemas against each other.
func agree(t testing.TB, schemas []scheduleSchema, text string) (taken bool) {
	t.Helper()
	window := windowOf(text, time.Hour, "")
	_, err := readWindow(&window, time.LoadLocation)
	for _, schema := range schemas {
		takes := schema.takes(text)
		if utf8.RuneCountInString(text) > schema.longest {
			continue // it never comes to the reader
		}
		switch {
		case err == nil && !takes:
			t.Errorf("%q: the reader takes it, and the schema does not", text)
		case err != nil && takes:
			known := false
			for _, words := range noPatternKnows {
				known = known || strings.Contains(err.Error(), words)
			}
			if !known {
				t.Errorf("%q: the schema takes it, and the reader says: %v", text, err)
			}
		}
	}
	return err == nil
}

var (
	goodSchedules = []string{"0 22 * * *", "0 22 * * 1-5", "* * * * *", "*/10 * * * *", "0 0 29 2 *", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly",
		"0,30 8-17/2 1,15 jan-mar,DEC Mon-FRI", "5/15 * ? * ?", "59 23 31 12 6", "00 07 01 09 0", "0  22   *  *  *", "0-59/59 0-23 1-31 1-12 0-6", "*/60 * * * *"}
	badSchedules = []string{"", " ", "tonight", " 0 22 * * *", "0 22 * * * ", " @daily", "@daily ", "@DAILY", "@every 1h", "@reboot", "@", "0\t22\t*\t*\t*", "0 22 * * *\n", "\t0 22 * * *", "0 22 * * *\t",
		"0\u00a022 * * *", "0\u200322 * * *", "TZ=Europe/Berlin 0 22 * * *", "CRON_TZ=UTC @daily", "TZ=", "0 22 * *", "0 0 22 * * *", "60 * * * *", "0 24 * * *", "0 0 0 * *", "0 0 32 * *", "0 0 * 0 *",
		"0 0 * 13 *", "0 0 * * 7", "0 0 * * sunday", "0 0 * january *", "mon 0 * * *", "0 0 * mon *", "0 0 * * jan", "- - - - -", ", , , , ,", "/ / / / /", "1, * * * *", ",1 * * * *", "1,,2 * * * *", "1- * * * *",
		"-1 * * * *", "1-2-3 * * * *", "1/ * * * *", "*/0 * * * *", "*/2/3 * * * *", "*-5 * * * *", "?-x * * * *", "** * * * *", "+5 * * * *", "1/+5 * * * *", "099 * * * *", "0x1 * * * *", "0 22 L * *", "0 22 * * 1#2",
		"0 22 15W * *", "99999999999999999999 * * * *"}
	// unknowable are those that the schema takes, and the reader does not.
	unknowable = []string{"0 0 30 2 *", "0 0 31 apr,6,9,nov *", "0 22-4 * * *", "5-3 * * * *", "0 0 * dec-jan *", "0 0 * * fri-1"}
)

// What the schemas take the reader takes, as far as a pattern can know; and what they refuse it does not read.
func TestSchemaAndReaderAgreeOnSchedules(t *testing.T) {
	schemas := scheduleSchemas(t)
	for _, text := range goodSchedules {
		if !agree(t, schemas, text) {
			t.Errorf("%q is refused", text)
		}
	}
	for _, text := range badSchedules {
		if agree(t, schemas, text) {
			t.Errorf("%q is taken", text)
		}
	}
	for _, text := range unknowable {
		if agree(t, schemas, text) || !schemas[0].takes(text) {
			t.Errorf("%q is what no pattern knows", text)
		}
	}
}

func FuzzSchedule(f *testing.F) {
	for _, texts := range [][]string{goodSchedules, badSchedules, unknowable} {
		for _, text := range texts {
			f.Add(text)
		}
	}
	schemas := scheduleSchemas(f)
	f.Fuzz(func(t *testing.T, text string) { agree(t, schemas, text) })
}
