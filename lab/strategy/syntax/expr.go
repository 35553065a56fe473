package syntax

// parseExpr reads an expression in the script's dialect.
func (p *parser) parseExpr() Expr {
	if !p.enterLevel() {
		return &Bad{span{p.tok.Pos, p.tok.End}}
	}
	defer p.leaveLevel()
	if p.lex.dialect == Thesis {
		return p.parseRelation(p.thesisSum, "a = b and c = d is read as a = (b and c) = d in the thesis's dialect: write (a = b) and (c = d)")
	}
	return p.parseOr()
}

// maxChain bounds the operators of one level of an expression: each is a level
// of the tree.
const maxChain = 500

// parseBinary reads operand {op operand} for the operators, from the left.
func (p *parser) parseBinary(operand func() Expr, ops ...Kind) Expr {
	x := operand()
	for n := 0; ; n++ {
		if n > maxChain {
			p.errorHere("more than %d operators in one expression", maxChain)
			p.tooDeep = true
			p.skipTo()
			return x
		}
		found := false
		for _, op := range ops {
			if p.tok.Kind == op {
				s := span{p.tok.Pos, p.tok.End}
				p.advanceToken()
				x = &Binary{span: s, Op: op, X: x, Y: operand()}
				found = true
				break
			}
		}
		if !found {
			return x
		}
	}
}

// The strict dialect, from the loosest to the tightest: or, and, not,
// relations, + -, * / div mod, signs.

func (p *parser) parseOr() Expr  { return p.parseBinary(p.parseAnd, Or) }
func (p *parser) parseAnd() Expr { return p.parseBinary(p.parseNot, And) }

func (p *parser) parseNot() Expr {
	if p.tok.Kind != Not {
		return p.parseRelation(p.parseSum, "relations do not chain: write a < b and b < c")
	}
	if !p.enterLevel() {
		return &Bad{span{p.tok.Pos, p.tok.End}}
	}
	defer p.leaveLevel()
	u := &Unary{span: span{p.tok.Pos, p.tok.End}, Op: Not}
	p.advanceToken()
	u.X = p.parseNot()
	return u
}

func (p *parser) parseSum() Expr  { return p.parseBinary(p.parseTerm, Plus, Minus) }
func (p *parser) parseTerm() Expr { return p.parseBinary(p.parseFactor, Star, Slash, Div, Mod) }

// The thesis's dialect is Pascal's: relations, then + - or, then * / and, then
// not and signs.

func (p *parser) thesisSum() Expr  { return p.parseBinary(p.thesisTerm, Plus, Minus, Or) }
func (p *parser) thesisTerm() Expr { return p.parseBinary(p.parseFactor, Star, Slash, And) }

// parseRelation reads operand [op operand]; a second operator is an error.
func (p *parser) parseRelation(operand func() Expr, chained string) Expr {
	x := operand()
	for n := 0; Less <= p.tok.Kind && p.tok.Kind <= Greater; n++ {
		if n > 0 {
			p.errorHere("%s", chained)
		}
		b := &Binary{span: span{p.tok.Pos, p.tok.End}, Op: p.tok.Kind, X: x}
		p.advanceToken()
		b.Y = operand()
		x = b
	}
	return x
}

// parseFactor reads signs, in the thesis's dialect also not, before a primary.
func (p *parser) parseFactor() Expr {
	switch {
	case p.tok.Kind == Plus, p.tok.Kind == Minus, p.tok.Kind == Not && p.lex.dialect == Thesis:
		if !p.enterLevel() {
			return &Bad{span{p.tok.Pos, p.tok.End}}
		}
		defer p.leaveLevel()
		u := &Unary{span: span{p.tok.Pos, p.tok.End}, Op: p.tok.Kind}
		p.advanceToken()
		u.X = p.parseFactor()
		return u
	}
	return p.parsePrimary()
}

// parsePrimary reads a literal, a name, a call or (x), and what follows with . or [.
func (p *parser) parsePrimary() Expr {
	s := span{p.tok.Pos, p.tok.End}
	var x Expr
	switch p.tok.Kind {
	case Int, Real, String:
		x = &Literal{s, p.tok.Kind, p.tok.Text}
		p.advanceToken()
	case LParen:
		p.advanceToken()
		in := p.parseExpr()
		p.expectToken(RParen, "to close the parenthesis")
		x = &Paren{s, in}
	case Word, NodeType, IntegerType, RealType, StringType: // node(i), integer(x) ... convert
		name, kind := p.tok.Text, p.tok.Kind
		p.advanceToken()
		switch {
		case p.acceptToken(LParen):
			x = &Call{s, name, p.parseArguments()}
		case kind == Word:
			x = &Ident{s, name}
		default:
			p.errorHere("expected \"(\" after %q, found %s", name, p.tok)
			return &Bad{s}
		}
	default:
		if p.tok.Kind == Not {
			p.errorHere("put parentheses around the operand that begins with not")
		} else {
			p.errorHere("expected an expression, found %s%s", p.tok, p.reservedHint())
		}
		return &Bad{s}
	}
	return p.parseSuffixes(x)
}

// parseSuffixes reads .name, .name(args) and [i] after an expression.
func (p *parser) parseSuffixes(x Expr) Expr {
	for n := 0; ; n++ {
		if n > maxNesting {
			p.errorHere("chained longer than %d", maxNesting)
			p.tooDeep = true
			p.skipTo()
			return x
		}
		switch p.tok.Kind {
		case Dot:
			p.advanceToken()
			m := &Member{span: span{p.tok.Pos, p.tok.End}, X: x, Name: p.tok.Text}
			if p.tok.Kind >= keywordsBegin { // reserved words may name members
				p.advanceToken()
			} else if !p.expectToken(Word, "after the dot") {
				return x
			}
			if p.acceptToken(LParen) {
				m.Called = true
				m.Args = p.parseArguments()
			}
			x = m
		case LBracket:
			ix := &Index{span: span{p.tok.Pos, p.tok.End}, X: x}
			p.advanceToken()
			ix.I = p.parseExpr()
			p.expectToken(RBracket, "after the index")
			x = ix
		default:
			return x
		}
	}
}

// parseArguments reads arguments after ( up to ).
func (p *parser) parseArguments() []Expr {
	var list []Expr
	if p.acceptToken(RParen) {
		return nil
	}
	for {
		list = append(list, p.parseExpr())
		if !p.acceptToken(Comma) {
			break
		}
	}
	p.expectToken(RParen, "after the arguments")
	return list
}
