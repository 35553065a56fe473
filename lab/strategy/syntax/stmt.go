package syntax

// block reads begin ... end.
func (p *parser) block() *Block {
	b := &Block{Pos: p.tok.Pos}
	if !p.expect(Begin, "") {
		return b
	}
	b.List = p.stmts(End)
	p.expect(End, "or a statement")
	return b
}

// stmts reads statements separated by semicolons up to the closing word.
func (p *parser) stmts(closing Kind) []Stmt {
	var list []Stmt
	for {
		for p.accept(Semicolon) {
		}
		switch p.tok.Kind {
		case closing, EOF, Attributes, Var, Const, Procedure, Function:
			return list
		case End, Until:
			return list // of another statement: its own error
		case Dot: // "end" is missing
			return list
		}
		before := p.tok.Pos
		s := p.stmt()
		list = append(list, s)
		switch {
		case p.tok.Kind == Semicolon || p.tok.Kind == closing || p.tok.Kind == EOF:
		case p.tok.Kind == Else:
			p.errorf("this else belongs to no if: there may be no ; before else")
			p.next()
		default:
			p.expectAfter(Semicolon, "between two statements")
			if !p.startsStmt() || p.tok.Pos == before {
				p.recoverStmt(before)
			}
		}
	}
}

func (p *parser) startsStmt() bool {
	switch p.tok.Kind {
	case Word, NodeType, Begin, If, While, For, Repeat:
		return true
	}
	return false
}

// recoverStmt skips the rest of a statement that began at the place; it moves
// on by one token at least.
func (p *parser) recoverStmt(began Pos) {
	if p.tok.Pos == began {
		p.next()
	}
	p.skipTo(Semicolon, End, Until, Begin, If, While, For, Repeat, Procedure, Function, Var, Attributes, Const)
}

// stmt reads one statement.
func (p *parser) stmt() Stmt {
	if !p.nest() {
		return &EmptyStmt{}
	}
	defer p.unnest()
	at := p.tok.Pos
	switch p.tok.Kind {
	case Begin:
		return p.block()
	case If:
		p.next()
		s := &IfStmt{Pos: at, Cond: p.expr()}
		p.expectWord(Then, "after the condition of if")
		s.Then = p.body()
		if p.accept(Else) {
			s.Else = p.body()
		}
		return s
	case While:
		p.next()
		s := &WhileStmt{Pos: at, Cond: p.expr()}
		p.expectWord(Do, "after the condition of while")
		s.Body = p.body()
		return s
	case Repeat:
		p.next()
		s := &RepeatStmt{Pos: at, List: p.stmts(Until)}
		p.expect(Until, "at the end of repeat")
		s.Cond = p.expr()
		return s
	case For:
		return p.forStmt()
	case Word, NodeType: // node(i).attribute := x
		return p.simple()
	case Semicolon, End, Else, Until, EOF:
		return &EmptyStmt{}
	default:
		p.errorf("expected a statement, found %s", p.tok)
		p.recoverStmt(at)
		return &EmptyStmt{}
	}
}

// body is the statement inside if, while and for; it may be empty.
func (p *parser) body() Stmt { return p.stmt() }

// expectWord expects then or do; if it is missing, what follows is skipped up
// to it, if it stands on the same line, so that the body is still read.
func (p *parser) expectWord(k Kind, why string) {
	if p.accept(k) {
		return
	}
	p.errorf("expected %q %s, found %s", k.String(), why, p.tok)
	line := p.tok.Pos.Line
	for p.tok.Kind != EOF && p.tok.Pos.Line == line {
		switch p.tok.Kind {
		case k:
			p.next()
			return
		case Semicolon, End, Begin, If, While, For, Repeat, Else:
			return
		}
		p.next()
	}
}

// forStmt reads for v := a to b do ... and for v in x do ...
func (p *parser) forStmt() Stmt {
	s := &ForStmt{Pos: p.tok.Pos}
	p.next()
	s.Var = &Ident{span{p.tok.Pos, p.tok.End}, p.tok.Text}
	if !p.expect(Word, "after for") {
		p.recoverStmt(s.Pos)
		return &EmptyStmt{}
	}
	switch {
	case p.accept(In):
		s.From = p.expr()
	case p.accept(Assign):
		s.From = p.expr()
		s.Down = p.tok.Kind == Downto
		if !p.accept(Downto) {
			p.expect(To, "or \"downto\" in for")
		}
		s.To = p.expr()
	default:
		p.errorf("expected \":=\" or \"in\" after the variable of for, found %s", p.tok)
		p.recoverStmt(s.Pos)
		return &EmptyStmt{}
	}
	p.expectWord(Do, "in for")
	s.Body = p.body()
	return s
}

// simple reads an assignment or a call.
func (p *parser) simple() Stmt {
	at := p.tok.Pos
	x := p.primary()
	switch p.tok.Kind {
	case Assign:
		at = p.tok.Pos
		p.next()
		return &AssignStmt{Pos: at, Left: x, Right: p.expr()}
	case Equal:
		p.errorf("an assignment is written \":=\"; \"=\" compares")
		p.next()
		return &AssignStmt{Pos: at, Left: x, Right: p.expr()}
	}
	return &CallStmt{X: x}
}
