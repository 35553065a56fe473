package syntax

// parseBlock reads begin ... end.
func (p *parser) parseBlock() *Block {
	b := &Block{Pos: p.tok.Pos}
	if !p.expectToken(Begin, "") {
		return b
	}
	b.List = p.parseStmts(End)
	p.expectToken(End, "or a statement")
	return b
}

// parseStmts reads statements separated by semicolons up to the closing word.
func (p *parser) parseStmts(closing Kind) []Stmt {
	var list []Stmt
	for {
		for p.acceptToken(Semicolon) {
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
		s := p.parseStmt()
		list = append(list, s)
		switch {
		case p.tok.Kind == Semicolon || p.tok.Kind == closing || p.tok.Kind == EOF:
		case p.tok.Kind == Else:
			p.errorHere("this else belongs to no if: there may be no ; before else")
			p.advanceToken()
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
		p.advanceToken()
	}
	p.skipTo(Semicolon, End, Until, Begin, If, While, For, Repeat, Procedure, Function, Var, Attributes, Const)
}

// parseStmt reads one statement.
func (p *parser) parseStmt() Stmt {
	if !p.enterLevel() {
		return &EmptyStmt{}
	}
	defer p.leaveLevel()
	at := p.tok.Pos
	switch p.tok.Kind {
	case Begin:
		return p.parseBlock()
	case If:
		p.advanceToken()
		s := &IfStmt{Pos: at, Cond: p.parseExpr()}
		p.expectWord(Then, "after the condition of if")
		s.Then = p.parseBody()
		if p.acceptToken(Else) {
			s.Else = p.parseBody()
		}
		return s
	case While:
		p.advanceToken()
		s := &WhileStmt{Pos: at, Cond: p.parseExpr()}
		p.expectWord(Do, "after the condition of while")
		s.Body = p.parseBody()
		return s
	case Repeat:
		p.advanceToken()
		s := &RepeatStmt{Pos: at, List: p.parseStmts(Until)}
		p.expectToken(Until, "at the end of repeat")
		s.Cond = p.parseExpr()
		return s
	case For:
		return p.parseFor()
	case Word, NodeType: // node(i).attribute := x
		return p.parseSimple()
	case Semicolon, End, Else, Until, EOF:
		return &EmptyStmt{}
	default:
		p.errorHere("expected a statement, found %s", p.tok)
		p.recoverStmt(at)
		return &EmptyStmt{}
	}
}

// parseBody is the statement inside if, while and for; it may be empty.
func (p *parser) parseBody() Stmt { return p.parseStmt() }

// expectWord expects then or do; if it is missing, what follows is skipped up
// to it, if it stands on the same line, so that the body is still read.
func (p *parser) expectWord(k Kind, why string) {
	if p.acceptToken(k) {
		return
	}
	p.errorHere("expected %q %s, found %s", k.String(), why, p.tok)
	line := p.tok.Pos.Line
	for p.tok.Kind != EOF && p.tok.Pos.Line == line {
		switch p.tok.Kind {
		case k:
			p.advanceToken()
			return
		case Semicolon, End, Begin, If, While, For, Repeat, Else:
			return
		}
		p.advanceToken()
	}
}

// parseFor reads for v := a to b do ... and for v in x do ...
func (p *parser) parseFor() Stmt {
	s := &ForStmt{Pos: p.tok.Pos}
	p.advanceToken()
	s.Var = &Ident{span{p.tok.Pos, p.tok.End}, p.tok.Text}
	if !p.expectToken(Word, "after for") {
		p.recoverStmt(s.Pos)
		return &EmptyStmt{}
	}
	switch {
	case p.acceptToken(In):
		s.From = p.parseExpr()
	case p.acceptToken(Assign):
		s.From = p.parseExpr()
		s.Down = p.tok.Kind == Downto
		if !p.acceptToken(Downto) {
			p.expectToken(To, "or \"downto\" in for")
		}
		s.To = p.parseExpr()
	default:
		p.errorHere("expected \":=\" or \"in\" after the variable of for, found %s", p.tok)
		p.recoverStmt(s.Pos)
		return &EmptyStmt{}
	}
	p.expectWord(Do, "in for")
	s.Body = p.parseBody()
	return s
}

// parseSimple reads an assignment or a call.
func (p *parser) parseSimple() Stmt {
	at := p.tok.Pos
	x := p.parsePrimary()
	switch p.tok.Kind {
	case Assign:
		at = p.tok.Pos
		p.advanceToken()
		return &AssignStmt{Pos: at, Left: x, Right: p.parseExpr()}
	case Equal:
		p.errorHere("an assignment is written \":=\"; \"=\" compares")
		p.advanceToken()
		return &AssignStmt{Pos: at, Left: x, Right: p.parseExpr()}
	}
	return &CallStmt{X: x}
}
