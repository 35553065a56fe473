package syntax

import (
	"slices"
	"strings"
)

// decls reads declarations up to begin.
func (p *parser) decls() []Decl {
	var ds []Decl
	for {
		switch p.tok.Kind {
		case Attributes:
			p.next()
			ds = append(ds, &AttrSection{List: p.varDecls("attribute")})
		case Var:
			p.next()
			ds = append(ds, &VarSection{List: p.varDecls("variable")})
		case Const:
			p.next()
			ds = append(ds, &ConstSection{List: p.constDecls()})
		case Procedure, Function:
			if !p.nest() {
				return ds
			}
			ds = append(ds, p.proc())
			p.unnest()
		case Begin, EOF:
			return ds
		default:
			p.errorf("expected attributes, var, const, procedure, function or begin, found %s", p.tok)
			p.next()
			p.skipTo(sections...)
		}
	}
}

// varDecls reads the lines of a section: names : type;
func (p *parser) varDecls(what string) []*VarDecl {
	var ds []*VarDecl
	if p.tok.Kind < keywordsBegin && p.tok.Kind != Word {
		p.errorf("expected the name of a first %s, found %s", what, p.tok)
		p.recoverDecl()
	}
	for p.tok.Kind == Word || p.tok.Kind >= keywordsBegin && !slices.Contains(sections, p.tok.Kind) {
		d, ok := p.varDecl()
		if !ok {
			p.recoverDecl()
			continue
		}
		ds = append(ds, d)
		if !p.expectAfter(Semicolon, "after the declaration") {
			if p.tok.Kind != Word || p.tok.Pos.Line == p.prev.Pos.Line {
				p.recoverDecl()
			}
		}
	}
	return ds
}

// recoverDecl skips the rest of a declaration.
func (p *parser) recoverDecl() {
	p.skipTo(append([]Kind{Semicolon}, sections...)...)
	p.accept(Semicolon)
}

// varDecl reads names : type. The thesis also writes a file without the colon.
func (p *parser) varDecl() (*VarDecl, bool) {
	d := &VarDecl{}
	for {
		n, ok := p.name(true)
		if !ok {
			return nil, false
		}
		d.Names = append(d.Names, n)
		if !p.accept(Comma) {
			break
		}
	}
	if p.tok.Kind != File && !p.expect(Colon, "before the type") {
		if p.tok.Kind < keywordsBegin {
			return nil, false
		}
	}
	var ok bool
	d.Type, ok = p.typ()
	return d, ok
}

// typ reads a type.
func (p *parser) typ() (*Type, bool) {
	if !p.nest() {
		return nil, false
	}
	defer p.unnest()
	t := &Type{Pos: p.tok.Pos, Kind: p.tok.Kind}
	var ok bool
	switch p.tok.Kind {
	case IntegerType, RealType, BooleanType, StringType, NodeType, File, AOQ:
		p.next()
		return t, true
	case Queue:
		p.next()
		if p.accept(LParen) {
			t.At, t.Param = p.tok.Pos, p.tok.Text
			if !p.expect(Word, "in queue(attribute)") || !p.expect(RParen, "after the attribute") {
				return nil, false
			}
		}
	case Stack, Array:
		p.next()
	case Map:
		p.next()
		if !p.expect(Of, "in map of KEY to VALUE") {
			return nil, false
		}
		if t.Key, ok = p.typ(); !ok || !p.expect(To, "in map of KEY to VALUE") {
			return nil, false
		}
		t.Elem, ok = p.typ()
		return t, ok
	default:
		p.errorf("expected a type, found %s", p.tok)
		return nil, false
	}
	if !p.expect(Of, "and the type of the elements") {
		return nil, false
	}
	t.Elem, ok = p.typ()
	return t, ok
}

// constDecls reads name = value; ...
func (p *parser) constDecls() []*ConstDecl {
	var ds []*ConstDecl
	for p.tok.Kind == Word {
		n, _ := p.name(false)
		if !p.expect(Equal, "and the constant's value") {
			p.recoverDecl()
			continue
		}
		ds = append(ds, &ConstDecl{Name: n, Value: p.expr()})
		if !p.expectAfter(Semicolon, "after the constant") {
			p.recoverDecl()
		}
	}
	return ds
}

// proc reads a procedure or a function.
func (p *parser) proc() *Proc {
	isFunc := p.tok.Kind == Function
	p.next()
	d := &Proc{Body: &Block{Pos: p.tok.Pos}}
	var ok bool
	if d.Name, ok = p.name(false); !ok {
		p.skipTo(sections...)
		return d
	}
	if p.accept(LParen) && !p.accept(RParen) {
		for {
			ref := p.accept(Var)
			v, ok := p.varDecl()
			if !ok {
				p.skipTo(Semicolon, RParen, Begin)
			} else {
				v.ByRef = ref
				d.Params = append(d.Params, v)
			}
			if !p.accept(Semicolon) {
				break
			}
		}
		p.expect(RParen, "after the parameters")
	}
	if isFunc {
		if p.expect(Colon, "and the type of the function's value") {
			d.Result, _ = p.typ()
		}
		if d.Result == nil {
			d.Result = &Type{Pos: p.prev.Pos, Kind: IntegerType}
		}
	}
	p.expectAfter(Semicolon, "after the heading of "+strings.TrimSpace(d.Name.Text))
	d.Decls = p.decls()
	d.Body = p.block()
	p.expectAfter(Semicolon, "after the end of "+d.Name.Text)
	return d
}
