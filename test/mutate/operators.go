//go:build linux

package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
)

// visit collects the mutants of one node; the walk goes on to what is inside.
func (f *finder) visit(n ast.Node) bool {
	if f.onlyLogs(n) {
		return false
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT || n.Op == token.SUB {
			f.replace(n, f.text(n.X))
		}
	case *ast.Ident:
		f.replaceNamed(n, n, map[string]string{"true": "false", "false": "true"})
	case *ast.BasicLit:
		f.number(n)
	case *ast.SelectorExpr:
		if isDuration(n) && !f.kept[n] {
			f.replace(n, "(2 * "+f.text(n)+")")
		}
	case *ast.CallExpr:
		if len(n.Args) > 1 {
			f.replaceNamed(n, n.Fun, map[string]string{"min": "max", "max": "min"})
		}
	case *ast.CompositeLit:
		f.elements(n)
	case ast.Stmt:
		f.statement(n)
	}
	return true
}

var swaps = map[token.Token][]string{
	token.EQL: {"!="}, token.NEQ: {"=="}, token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"}, token.REM: {"*"}, token.LAND: {"||"}, token.LOR: {"&&"},
	token.ADD_ASSIGN: {"-="}, token.SUB_ASSIGN: {"+="}, token.INC: {"--"}, token.DEC: {"++"},
}

func (f *finder) binary(n *ast.BinaryExpr) {
	if n.Op == token.MUL && (isDuration(n.X) || isDuration(n.Y)) {
		f.kept[n.X], f.kept[n.Y] = true, true // 5 * time.Second is changed by its number
		return
	}
	for _, op := range swaps[n.Op] {
		f.replace(n, "("+f.text(n.X)+" "+op+" "+f.text(n.Y)+")")
	}
	if n.Op != token.LAND && n.Op != token.LOR {
		return
	}
	f.negate(n.X)
	f.negate(n.Y)
	f.remove(n.X.End(), n.Y.End(), "")
	if left, ok := n.X.(*ast.BinaryExpr); !ok || left.Op != n.Op {
		f.remove(n.X.Pos(), n.Y.Pos(), "")
	}
}

// negate negates a condition that has no operator of its own to swap.
func (f *finder) negate(e ast.Expr) {
	switch e.(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.CallExpr, *ast.IndexExpr, *ast.StarExpr:
		if text := f.text(e); text != "true" && text != "false" && text != "nil" {
			f.replace(e, "!"+text)
		}
	}
}

func (f *finder) number(n *ast.BasicLit) {
	value, err := strconv.ParseInt(n.Value, 0, 64)
	switch {
	case n.Kind != token.INT || err != nil:
	case value == 1:
		f.replace(n, "0")
	default:
		f.replace(n, strconv.FormatInt(value+1, 10))
	}
}

// elements removes what a composite literal says of a field, or holds. Plain words are left.
func (f *finder) elements(n *ast.CompositeLit) {
	for i, e := range n.Elts {
		word, ok := e.(*ast.BasicLit)
		switch {
		case ok && word.Kind == token.STRING:
		case len(n.Elts) == 1:
			f.removeAs(e, n.Lbrace+1, n.Rbrace)
		default:
			f.removeListed(n.Elts, i)
		}
	}
}

func (f *finder) statement(n ast.Stmt) {
	if n == f.post {
		return // without it the loop has no end
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		f.assignment(n)
	case *ast.IncDecStmt:
		f.replace(n, f.text(n.X)+swaps[n.Tok][0])
		f.removeStatement(n)
	case *ast.ExprStmt:
		if !isLogLine(f.text(n)) {
			f.removeStatement(n)
		}
	case *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt, *ast.BranchStmt:
		f.removeStatement(n)
	case *ast.ReturnStmt:
		f.removeStatement(n)
		for _, result := range n.Results {
			f.negate(result)
			f.empty(result)
		}
	case *ast.IfStmt:
		f.condition(n)
	case *ast.ForStmt:
		f.post = n.Post
		if n.Cond != nil {
			f.negate(n.Cond)
		}
	case *ast.SwitchStmt:
		f.cases(n.Body, n.Tag == nil)
	case *ast.TypeSwitchStmt:
		f.kept[n.Assign] = true
		f.cases(n.Body, false)
	}
}

// onlyLogs tells of an if, or of a case, that does nothing but to write log lines.
func (f *finder) onlyLogs(n ast.Node) bool {
	var body []ast.Stmt
	switch n := n.(type) {
	case *ast.IfStmt:
		if n.Else != nil || n.Init != nil {
			return false
		}
		body = n.Body.List
	case *ast.CaseClause:
		body = n.Body
	}
	return len(body) > 0 && !slices.ContainsFunc(body, func(s ast.Stmt) bool { return !isLogLine(f.text(s)) })
}

var logLine = regexp.MustCompile(`^(\w+\.)*[lL]ogger\.(Debug|Info|Warn|Error)\(`)

// isLogLine: words for people are left as they are.
func isLogLine(statement string) bool { return logLine.MatchString(statement) }

// empty gives no result instead of one, where that compiles.
func (f *finder) empty(result ast.Expr) {
	switch text := f.text(result); result.(type) {
	case *ast.BasicLit, *ast.BinaryExpr:
	default:
		if text != "nil" && text != "true" && text != "false" {
			f.replace(result, "nil")
		}
	}
}

func (f *finder) assignment(n *ast.AssignStmt) {
	_, calls := n.Rhs[0].(*ast.CallExpr)
	if n.Tok == token.DEFINE || f.text(n.Lhs[0]) == "_" && len(n.Lhs) == 1 && !calls {
		return
	}
	if len(n.Lhs) == 1 || len(n.Rhs) == 1 {
		f.removeStatement(n)
	}
	for _, op := range swaps[n.Tok] {
		f.replace(n, f.text(n.Lhs[0])+" "+op+" "+f.text(n.Rhs[0]))
	}
	for i, to := range n.Lhs {
		switch {
		case len(n.Lhs) == 1 || f.text(to) == "_":
		case len(n.Rhs) == 1:
			f.replace(to, "_")
		default:
			f.replace(n, f.without(n.Lhs, i)+" = "+f.without(n.Rhs, i))
		}
	}
}

// condition removes an early exit, and a statement along with the condition that is there for it alone.
func (f *finder) condition(n *ast.IfStmt) {
	f.negate(n.Cond)
	body := n.Body.List
	if len(body) == 0 || n.Else != nil {
		return
	}
	if len(body) == 1 && n.Init == nil {
		f.kept[body[0]] = true
	}
	_, returns := body[len(body)-1].(*ast.ReturnStmt)
	_, branches := body[len(body)-1].(*ast.BranchStmt)
	if len(body) == 1 || returns || branches {
		f.removeStatement(n)
	}
}

func (f *finder) cases(body *ast.BlockStmt, conditions bool) {
	for _, s := range body.List {
		clause := s.(*ast.CaseClause)
		if f.onlyLogs(clause) {
			continue
		}
		if len(clause.List) > 0 || len(clause.Body) > 0 {
			f.remove(clause.Pos(), clause.End(), "")
		}
		for i, e := range clause.List {
			if conditions {
				f.negate(e)
			}
			if len(clause.List) > 1 {
				f.removeListed(clause.List, i)
			}
		}
	}
}

var units = []string{"Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

func isDuration(e ast.Expr) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	in, ok := selector.X.(*ast.Ident)
	return ok && in.Name == "time" && slices.Contains(units, selector.Sel.Name)
}
