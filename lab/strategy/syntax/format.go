package syntax

import (
	"fmt"
	"strings"
)

// Format writes the tree as a script that parses to the same tree.
func Format(s *Script) string {
	f := &formatter{}
	if s.Dialect == Thesis {
		f.line("{$thesis}")
	}
	if s.Name != "" {
		f.line("program %s;", s.Name)
	}
	f.decls(s.Decls)
	f.block(s.Body, ".")
	return f.b.String()
}

// formatter writes lines with their indentation.
type formatter struct {
	b      strings.Builder
	indent int
}

func (f *formatter) line(format string, args ...any) {
	f.b.WriteString(strings.Repeat("  ", f.indent))
	fmt.Fprintf(&f.b, format, args...)
	f.b.WriteByte('\n')
}

func (f *formatter) decls(ds []Decl) {
	for _, d := range ds {
		switch d := d.(type) {
		case *AttrSection:
			f.section("attributes", d.List)
		case *VarSection:
			f.section("var", d.List)
		case *ConstSection:
			f.line("const")
			for _, c := range d.List {
				f.line("  %s = %s;", c.Name.Text, exprText(c.Value))
			}
		case *Proc:
			f.proc(d)
		}
	}
}

func (f *formatter) section(word string, list []*VarDecl) {
	if len(list) == 0 {
		return
	}
	f.line("%s", word)
	for _, v := range list {
		f.line("  %s;", varText(v))
	}
}

func varText(v *VarDecl) string {
	names := make([]string, len(v.Names))
	for i, n := range v.Names {
		names[i] = n.Text
		if n.Param != "" {
			names[i] += "(" + n.Param + ")"
		}
	}
	return strings.Join(names, ", ") + " : " + typeText(v.Type)
}

func typeText(t *Type) string {
	s := t.Kind.String()
	if t.Param != "" {
		s += "(" + t.Param + ")"
	}
	if t.Key != nil {
		return s + " of " + typeText(t.Key) + " to " + typeText(t.Elem)
	}
	if t.Elem != nil {
		s += " of " + typeText(t.Elem)
	}
	return s
}

func (f *formatter) proc(d *Proc) {
	params := make([]string, len(d.Params))
	for i, p := range d.Params {
		if params[i] = varText(p); p.ByRef {
			params[i] = "var " + params[i]
		}
	}
	word, result := "procedure", ""
	if d.Result != nil {
		word, result = "function", " : "+typeText(d.Result)
	}
	f.line("%s %s(%s)%s;", word, d.Name.Text, strings.Join(params, "; "), result)
	f.decls(d.Decls)
	f.block(d.Body, ";")
}

func (f *formatter) block(b *Block, closing string) {
	f.line("begin")
	f.indent++
	f.stmts(b.List)
	f.indent--
	f.line("end%s", closing)
}

func (f *formatter) stmts(list []Stmt) {
	for _, s := range list {
		f.stmt(s, ";")
	}
}

// inner writes the statement inside another.
func (f *formatter) inner(s Stmt, closing string) {
	f.indent++
	f.stmt(s, closing)
	f.indent--
}

// stmt writes a statement; closing is ; or nothing (before else).
func (f *formatter) stmt(s Stmt, closing string) {
	switch s := s.(type) {
	case *Block:
		f.block(s, closing)
	case *AssignStmt:
		f.line("%s := %s%s", exprText(s.Left), exprText(s.Right), closing)
	case *CallStmt:
		f.line("%s%s", exprText(s.X), closing)
	case *IfStmt:
		f.line("if %s then", exprText(s.Cond))
		if s.Else == nil {
			f.inner(s.Then, closing)
			return
		}
		f.inner(s.Then, "")
		f.line("else")
		f.inner(s.Else, closing)
	case *WhileStmt:
		f.line("while %s do", exprText(s.Cond))
		f.inner(s.Body, closing)
	case *RepeatStmt:
		f.line("repeat")
		f.indent++
		f.stmts(s.List)
		f.indent--
		f.line("until %s%s", exprText(s.Cond), closing)
	case *ForStmt:
		if s.To == nil {
			f.line("for %s in %s do", s.Var.Name, exprText(s.From))
		} else {
			word := "to"
			if s.Down {
				word = "downto"
			}
			f.line("for %s := %s %s %s do", s.Var.Name, exprText(s.From), word, exprText(s.To))
		}
		f.inner(s.Body, closing)
	case *EmptyStmt:
		f.block(&Block{}, closing)
	}
}

// exprText writes an expression. Parentheses of the script are part of the
// tree, so none need be added.
func exprText(x Expr) string {
	var b strings.Builder
	writeExpr(&b, x)
	return b.String()
}

func writeExpr(b *strings.Builder, x Expr) {
	switch x := x.(type) {
	case *Ident:
		b.WriteString(x.Name)
	case *Literal:
		if x.Kind == String {
			b.WriteString(`"` + strings.ReplaceAll(x.Text, `"`, `""`) + `"`)
		} else {
			b.WriteString(x.Text)
		}
	case *Unary:
		b.WriteString(x.Op.String() + " ")
		writeExpr(b, x.X)
	case *Binary:
		writeExpr(b, x.X)
		b.WriteString(" " + x.Op.String() + " ")
		writeExpr(b, x.Y)
	case *Paren:
		b.WriteByte('(')
		writeExpr(b, x.X)
		b.WriteByte(')')
	case *Call:
		b.WriteString(x.Name)
		writeArgs(b, x.Args)
	case *Member:
		writeExpr(b, x.X)
		b.WriteString("." + x.Name)
		if x.Called {
			writeArgs(b, x.Args)
		}
	case *Index:
		writeExpr(b, x.X)
		b.WriteByte('[')
		writeExpr(b, x.I)
		b.WriteByte(']')
	}
}

func writeArgs(b *strings.Builder, args []Expr) {
	b.WriteByte('(')
	for i, a := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		writeExpr(b, a)
	}
	b.WriteByte(')')
}
