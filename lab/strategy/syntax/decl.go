package syntax

import (
	"slices"
	"strings"
)

// parseDeclarations reads declarations up to begin.
func (p *parser) parseDeclarations() []Decl {
	var ds []Decl
	for {
		switch p.tok.Kind {
		case Attributes:
			p.advanceToken()
			ds = append(ds, &AttrSection{List: p.varDecls("attribute")})
		case Var:
			p.advanceToken()
			ds = append(ds, &VarSection{List: p.varDecls("variable")})
		case Const:
			p.advanceToken()
			ds = append(ds, &ConstSection{List: p.constDecls()})
		case Procedure, Function:
			if !p.enterLevel() {
				return ds
			}
			ds = append(ds, p.parseProcedure())
			p.leaveLevel()
		case Begin, EOF:
			return ds
		default:
			p.errorHere("expected attributes, var, const, procedure, function or begin, found %s", p.tok)
			p.advanceToken()
			p.skipTo(sections...)
		}
	}
}

// varDecls reads the lines of a section: names : type;
func (p *parser) varDecls(what string) []*VarDecl {
	var ds []*VarDecl
	if p.tok.Kind < keywordsBegin && p.tok.Kind != Word {
		p.errorHere("expected the name of a first %s, found %s", what, p.tok)
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
	p.acceptToken(Semicolon)
}

// varDecl reads names : type. The thesis also writes a file without the colon.
func (p *parser) varDecl() (*VarDecl, bool) {
	d := &VarDecl{}
	for {
		n, ok := p.parseName(true)
		if !ok {
			return nil, false
		}
		d.Names = append(d.Names, n)
		if !p.acceptToken(Comma) {
			break
		}
	}
	if p.tok.Kind != File && !p.expectToken(Colon, "before the type") {
		if p.tok.Kind < keywordsBegin {
			return nil, false
		}
	}
	var ok bool
	d.Type, ok = p.parseType()
	return d, ok
}

// parseType reads a type.
func (p *parser) parseType() (*Type, bool) {
	if !p.enterLevel() {
		return nil, false
	}
	defer p.leaveLevel()
	t := &Type{Pos: p.tok.Pos, Kind: p.tok.Kind}
	var ok bool
	switch p.tok.Kind {
	case IntegerType, RealType, BooleanType, StringType, NodeType, File, AOQ:
		p.advanceToken()
		return t, true
	case Queue:
		p.advanceToken()
		if p.acceptToken(LParen) {
			t.At, t.Param = p.tok.Pos, p.tok.Text
			if !p.expectToken(Word, "in queue(attribute)") || !p.expectToken(RParen, "after the attribute") {
				return nil, false
			}
		}
	case Stack, Array:
		p.advanceToken()
	case Map:
		p.advanceToken()
		if !p.expectToken(Of, "in map of KEY to VALUE") {
			return nil, false
		}
		if t.Key, ok = p.parseType(); !ok || !p.expectToken(To, "in map of KEY to VALUE") {
			return nil, false
		}
		t.Elem, ok = p.parseType()
		return t, ok
	default:
		p.errorHere("expected a type, found %s", p.tok)
		return nil, false
	}
	if !p.expectToken(Of, "and the type of the elements") {
		return nil, false
	}
	t.Elem, ok = p.parseType()
	return t, ok
}

// constDecls reads name = value; ...
func (p *parser) constDecls() []*ConstDecl {
	var ds []*ConstDecl
	for p.tok.Kind == Word {
		n, _ := p.parseName(false)
		if !p.expectToken(Equal, "and the constant's value") {
			p.recoverDecl()
			continue
		}
		ds = append(ds, &ConstDecl{Name: n, Value: p.parseExpr()})
		if !p.expectAfter(Semicolon, "after the constant") {
			p.recoverDecl()
		}
	}
	return ds
}

// parseProcedure reads a procedure or a function.
func (p *parser) parseProcedure() *Proc {
	isFunc := p.tok.Kind == Function
	p.advanceToken()
	d := &Proc{Body: &Block{Pos: p.tok.Pos}}
	var ok bool
	if d.Name, ok = p.parseName(false); !ok {
		p.skipTo(sections...)
		return d
	}
	if p.acceptToken(LParen) && !p.acceptToken(RParen) {
		for {
			ref := p.acceptToken(Var)
			v, ok := p.varDecl()
			if !ok {
				p.skipTo(Semicolon, RParen, Begin)
			} else {
				v.ByRef = ref
				d.Params = append(d.Params, v)
			}
			if !p.acceptToken(Semicolon) {
				break
			}
		}
		p.expectToken(RParen, "after the parameters")
	}
	if isFunc {
		if p.expectToken(Colon, "and the type of the function's value") {
			d.Result, _ = p.parseType()
		}
		if d.Result == nil {
			d.Result = &Type{Pos: p.prev.Pos, Kind: IntegerType}
		}
	}
	p.expectAfter(Semicolon, "after the heading of "+strings.TrimSpace(d.Name.Text))
	d.Decls = p.parseDeclarations()
	d.Body = p.parseBlock()
	p.expectAfter(Semicolon, "after the end of "+d.Name.Text)
	return d
}
