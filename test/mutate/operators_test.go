//go:build linux

package main

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// Each row: a statement, and its mutants in words. Each mutant but a removed return is a function that parses.
func TestOperators(t *testing.T) {
	for _, row := range []struct {
		statement string
		want      []string
	}{
		{`v := a == b`, []string{"a == b → (a != b)"}},
		{`v := a < b`, []string{"a < b → (a <= b)", "a < b → (a >= b)"}},
		{`v := a && b || c`, []string{"a && b || c → (a && b && c)", "c → !c", "removed || c", "removed a && b ||",
			"a && b → (a || b)", "a → !a", "b → !b", "removed && b", "removed a &&"}},
		{`v := -a`, []string{"-a → a"}},
		{`v := a - 7`, []string{"a - 7 → (a + 7)", "7 → 8"}},
		{`v := max(a, b)`, []string{"max(a, b) → min(a, b)"}},
		{`v := 5 * time.Minute`, []string{"5 → 6"}},
		{`v := time.Minute`, []string{"time.Minute → (2 * time.Minute)"}},
		{`v := time.Now`, nil},
		{`a = true`, []string{"removed a = true", "true → false"}},
		{`a, b, _ = x, y, z`, []string{"a, b, _ = x, y, z → b, _ = y, z", "a, b, _ = x, y, z → a, _ = x, z"}},
		{`a, b = f()`, []string{"removed a, b = f()", "a → _", "b → _"}},
		{`a := f()`, nil},
		{`_ = a`, nil},
		{`_ = f()`, []string{"removed _ = f()"}},
		{`_, _ = f()`, []string{"removed _, _ = f()"}},
		{`a += b`, []string{"removed a += b", "a += b → a -= b"}},
		{`a++`, []string{"a++ → a--", "removed a++"}},
		{`s.f("words", 0)`, []string{`removed s.f("words", 0)`, "0 → 1"}},
		{`s.Logger.Warn("words")`, nil},
		{`p.logger.Info("words", zap.Error(err))`, nil},
		{`if a && !b { s.Logger.Warn("words") }`, nil},
		{`if a { s.Logger.Warn("words"); f() }`, []string{"a → !a", "removed f()"}},
		{"switch { case a: s.Logger.Warn(\"words\")\ncase b: f() }", []string{"removed case b: f()", "b → !b", "removed f()"}},
		{`a.logger.begin()`, []string{"removed a.logger.begin()"}},
		{`go f()`, []string{"removed go f()"}},
		{`if a { f() }`, []string{"a → !a", "removed if a { f() }"}},
		{`if a { b++ }`, []string{"a → !a", "removed if a { b++ }", "b++ → b--"}},
		{`if a { f(); g() }`, []string{"a → !a", "removed f()", "removed g()"}},
		{`if a { f(); return }`, []string{"a → !a", "removed if a { f(); return }", "removed f()", "removed return"}},
		{`if a = x; !a { f() }`, []string{"removed if a = x; !a { f() }", "removed a = x", "!a → a", "removed f()"}},
		{`if a { f() } else if b { g() }`, []string{"a → !a", "removed f()", "b → !b",
			"removed if b { g() }"}},
		{`for i := 0; a; i++ { continue }`, []string{"a → !a", "0 → 1", "removed continue"}},
		{"switch { case a: f()\ncase b, c: default: }", []string{"removed case a: f()", "a → !a", "removed case b, c:", "b → !b",
			"removed b", "c → !c", "removed c", "removed f()"}},
		{`switch v.(type) { case a: f() }`, []string{"removed case a: f()", "removed f()"}},
		{`v := T{A: a, B: "words"}`, []string{"removed A: a", `removed B: "words"`}},
		{`v := T{a, "words"}`, []string{"removed a"}},
		{`v := T{a}`, []string{"removed a"}},
		{`f(1, 1)`, []string{"removed f(1, 1)", "1 → 0", "1 → 0 #2"}},
	} {
		source := "package p\n\nfunc (s *S[T]) method() {\n\t" + row.statement + "\n}\n"
		mutants, err := find("a.go", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range mutants {
			got = append(got, m.change)
			if m.function != "S.method" || m.at.Line < 4 {
				t.Errorf("%s: %s", row.statement, m)
			}
			text := apply([]byte(source), []edit{m.edit})
			if _, err := parser.ParseFile(token.NewFileSet(), "", text, 0); err != nil {
				t.Errorf("%s: %s: %v", row.statement, m.change, err)
			}
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s\n got %q\nwant %q", row.statement, got, row.want)
		}
	}
}

func TestResults(t *testing.T) {
	mutants, err := find("a.go", []byte("package p\n\nconst c = 2\n\nfunc f() (*T, bool) {\n\treturn x, ok\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range mutants {
		got = append(got, m.key())
	}
	want := "a.go c: 2 → 3|a.go f: removed return x, ok|a.go f: x → !x|a.go f: x → nil|a.go f: ok → !ok|a.go f: ok → nil"
	if strings.Join(got, "|") != want {
		t.Errorf("%q", got)
	}
}
