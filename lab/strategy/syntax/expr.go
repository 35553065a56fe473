package syntax

// expr reads an expression in the script's dialect.
func (p *parser) expr() Expr {
	if !p.nest() {
		return &Bad{span{p.tok.Pos, p.tok.End}}
	}
	defer p.unnest()
	if p.lex.dialect == Thesis {
		return p.relation(p.thesisSum, "a = b and c = d is read as a = (b and c) = d in the thesis's dialect: write (a = b) and (c = d)")
	}
	return p.or()
}

// maxChain bounds the operators of one level of an expression: each is a level
// of the tree.
const maxChain = 500

// binary reads operand {op operand} for the operators, from the left.
func (p *parser) binary(operand func() Expr, ops ...Kind) Expr {
	x := operand()
	for n := 0; ; n++ {
		if n > maxChain {
			p.errorf("more than %d operators in one expression", maxChain)
			p.tooDeep = true
			p.skipTo()
			return x
		}
		found := false
		for _, op := range ops {
			if p.tok.Kind == op {
				s := span{p.tok.Pos, p.tok.End}
				p.next()
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

func (p *parser) or() Expr  { return p.binary(p.and, Or) }
func (p *parser) and() Expr { return p.binary(p.not, And) }

func (p *parser) not() Expr {
	if p.tok.Kind != Not {
		return p.relation(p.sum, "relations do not chain: write a < b and b < c")
	}
	if !p.nest() {
		return &Bad{span{p.tok.Pos, p.tok.End}}
	}
	defer p.unnest()
	u := &Unary{span: span{p.tok.Pos, p.tok.End}, Op: Not}
	p.next()
	u.X = p.not()
	return u
}

func (p *parser) sum() Expr  { return p.binary(p.term, Plus, Minus) }
func (p *parser) term() Expr { return p.binary(p.factor, Star, Slash, Div, Mod) }

// The thesis's dialect is Pascal's: relations, then + - or, then * / and, then
// not and signs.

func (p *parser) thesisSum() Expr  { return p.binary(p.thesisTerm, Plus, Minus, Or) }
func (p *parser) thesisTerm() Expr { return p.binary(p.factor, Star, Slash, And) }

// relation reads operand [op operand]; a second operator is an error.
func (p *parser) relation(operand func() Expr, chained string) Expr {
	x := operand()
	for n := 0; Less <= p.tok.Kind && p.tok.Kind <= Greater; n++ {
		if n > 0 {
			p.errorf("%s", chained)
		}
		b := &Binary{span: span{p.tok.Pos, p.tok.End}, Op: p.tok.Kind, X: x}
		p.next()
		b.Y = operand()
		x = b
	}
	return x
}

// factor reads signs, in the thesis's dialect also not, before a primary.
func (p *parser) factor() Expr {
	switch {
	case p.tok.Kind == Plus, p.tok.Kind == Minus, p.tok.Kind == Not && p.lex.dialect == Thesis:
		if !p.nest() {
			return &Bad{span{p.tok.Pos, p.tok.End}}
		}
		defer p.unnest()
		u := &Unary{span: span{p.tok.Pos, p.tok.End}, Op: p.tok.Kind}
		p.next()
		u.X = p.factor()
		return u
	}
	return p.primary()
}

// primary reads a literal, a name, a call or (x), and what follows with . or [.
func (p *parser) primary() Expr {
	s := span{p.tok.Pos, p.tok.End}
	var x Expr
	switch p.tok.Kind {
	case Int, Real, String:
		x = &Literal{s, p.tok.Kind, p.tok.Text}
		p.next()
	case LParen:
		p.next()
		in := p.expr()
		p.expect(RParen, "to close the parenthesis")
		x = &Paren{s, in}
	case Word, NodeType, IntegerType, RealType, StringType: // node(i), integer(x) ... convert
		name, kind := p.tok.Text, p.tok.Kind
		p.next()
		switch {
		case p.accept(LParen):
			x = &Call{s, name, p.args()}
		case kind == Word:
			x = &Ident{s, name}
		default:
			p.errorf("expected \"(\" after %q, found %s", name, p.tok)
			return &Bad{s}
		}
	default:
		if p.tok.Kind == Not {
			p.errorf("put parentheses around the operand that begins with not")
		} else {
			p.errorf("expected an expression, found %s%s", p.tok, p.reservedHint())
		}
		return &Bad{s}
	}
	return p.suffixes(x)
}

// suffixes reads .name, .name(args) and [i] after an expression.
func (p *parser) suffixes(x Expr) Expr {
	for n := 0; ; n++ {
		if n > maxNesting {
			p.errorf("chained longer than %d", maxNesting)
			p.tooDeep = true
			p.skipTo()
			return x
		}
		switch p.tok.Kind {
		case Dot:
			p.next()
			m := &Member{span: span{p.tok.Pos, p.tok.End}, X: x, Name: p.tok.Text}
			if p.tok.Kind >= keywordsBegin { // reserved words may name members
				p.next()
			} else if !p.expect(Word, "after the dot") {
				return x
			}
			if p.accept(LParen) {
				m.Called = true
				m.Args = p.args()
			}
			x = m
		case LBracket:
			ix := &Index{span: span{p.tok.Pos, p.tok.End}, X: x}
			p.next()
			ix.I = p.expr()
			p.expect(RBracket, "after the index")
			x = ix
		default:
			return x
		}
	}
}

// args reads arguments after ( up to ).
func (p *parser) args() []Expr {
	var list []Expr
	if p.accept(RParen) {
		return nil
	}
	for {
		list = append(list, p.expr())
		if !p.accept(Comma) {
			break
		}
	}
	p.expect(RParen, "after the arguments")
	return list
}
