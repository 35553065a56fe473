package syntax

import (
	"fmt"
	"strings"
)

// Format writes the tree as a script that parses to the same tree.
func Format(s *Script) string {
	f := &formatter{}
	if s.Dialect == Thesis {
		f.writeIndented("{$thesis}")
	}
	if s.Name != "" {
		f.writeIndented("program %s;", s.Name)
	}
	f.formatDeclarations(s.Decls)
	f.formatBlock(s.Body, ".")
	return f.b.String()
}

// formatter writes lines with their indentation.
type formatter struct {
	b      strings.Builder
	indent int
}

func (f *formatter) writeIndented(format string, args ...any) {
	f.b.WriteString(strings.Repeat("  ", f.indent))
	fmt.Fprintf(&f.b, format, args...)
	f.b.WriteByte('\n')
}

func (f *formatter) formatDeclarations(ds []Decl) {
	for _, d := range ds {
		switch d := d.(type) {
		case *AttrSection:
			f.formatSection("attributes", d.List)
		case *VarSection:
			f.formatSection("var", d.List)
		case *ConstSection:
			f.writeIndented("const")
			for _, c := range d.List {
				f.writeIndented("  %s = %s;", c.Name.Text, exprText(c.Value))
			}
		case *Proc:
			f.formatProcedure(d)
		}
	}
}

func (f *formatter) formatSection(word string, list []*VarDecl) {
	if len(list) == 0 {
		return
	}
	f.writeIndented("%s", word)
	for _, v := range list {
		f.writeIndented("  %s;", varText(v))
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

func (f *formatter) formatProcedure(d *Proc) {
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
	f.writeIndented("%s %s(%s)%s;", word, d.Name.Text, strings.Join(params, "; "), result)
	f.formatDeclarations(d.Decls)
	f.formatBlock(d.Body, ";")
}

func (f *formatter) formatBlock(b *Block, closing string) {
	f.writeIndented("begin")
	f.indent++
	f.formatStmts(b.List)
	f.indent--
	f.writeIndented("end%s", closing)
}

func (f *formatter) formatStmts(list []Stmt) {
	for _, s := range list {
		f.formatStmt(s, ";")
	}
}

// formatInner writes the statement inside another.
func (f *formatter) formatInner(s Stmt, closing string) {
	f.indent++
	f.formatStmt(s, closing)
	f.indent--
}

// formatStmt writes a statement; closing is ; or nothing (before else).
func (f *formatter) formatStmt(s Stmt, closing string) {
	switch s := s.(type) {
	case *Block:
		f.formatBlock(s, closing)
	case *AssignStmt:
		f.writeIndented("%s := %s%s", exprText(s.Left), exprText(s.Right), closing)
	case *CallStmt:
		f.writeIndented("%s%s", exprText(s.X), closing)
	case *IfStmt:
		f.writeIndented("if %s then", exprText(s.Cond))
		if s.Else == nil {
			f.formatInner(s.Then, closing)
			return
		}
		f.formatInner(s.Then, "")
		f.writeIndented("else")
		f.formatInner(s.Else, closing)
	case *WhileStmt:
		f.writeIndented("while %s do", exprText(s.Cond))
		f.formatInner(s.Body, closing)
	case *RepeatStmt:
		f.writeIndented("repeat")
		f.indent++
		f.formatStmts(s.List)
		f.indent--
		f.writeIndented("until %s%s", exprText(s.Cond), closing)
	case *ForStmt:
		if s.To == nil {
			f.writeIndented("for %s in %s do", s.Var.Name, exprText(s.From))
		} else {
			word := "to"
			if s.Down {
				word = "downto"
			}
			f.writeIndented("for %s := %s %s %s do", s.Var.Name, exprText(s.From), word, exprText(s.To))
		}
		f.formatInner(s.Body, closing)
	case *EmptyStmt:
		f.formatBlock(&Block{}, closing)
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
