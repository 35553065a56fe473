package syntax

// Script is a whole strategy.
type Script struct {
	Name    string // program NAME; may be empty
	Dialect Dialect
	Decls   []Decl // in the order of the script
	Body    *Block
}

// Decl is a declaration: *AttrSection, *VarSection, *ConstSection or *Proc.
type Decl interface{ isDecl() }

// AttrSection declares persistent attributes of nodes.
type AttrSection struct{ List []*VarDecl }

// VarSection declares variables.
type VarSection struct{ List []*VarDecl }

// ConstSection declares constants.
type ConstSection struct{ List []*ConstDecl }

// VarDecl declares names of one type: a, b : type.
type VarDecl struct {
	Names []Name
	Type  *Type
	ByRef bool // of a parameter: var
}

// Name is a declared name. Param is what stands in parentheses after it: the
// attribute by which a queue is sorted, or the path of a file.
type Name struct {
	Pos   Pos
	Text  string
	Param string
	At    Pos // of Param
}

// ConstDecl is name = value.
type ConstDecl struct {
	Name  Name
	Value Expr
}

// Proc is a procedure or, with Result, a function.
type Proc struct {
	Name   Name
	Params []*VarDecl
	Result *Type
	Decls  []Decl
	Body   *Block
}

// Type is a type as written.
type Type struct {
	Pos   Pos
	Kind  Kind   // IntegerType, ..., Queue, Stack, Array, Map, File, AOQ
	Param string // queue(Param)
	At    Pos    // of Param
	Key   *Type  // map of Key to Elem
	Elem  *Type
}

func (*AttrSection) isDecl()  {}
func (*VarSection) isDecl()   {}
func (*ConstSection) isDecl() {}
func (*Proc) isDecl()         {}

// Stmt is a statement.
type Stmt interface{ isStmt() }

// Statements.
type (
	// Block is begin ... end.
	Block struct {
		Pos  Pos
		List []Stmt
	}
	// AssignStmt is left := right.
	AssignStmt struct {
		Pos         Pos
		Left, Right Expr
	}
	// CallStmt is a call, its value, if any, unused.
	CallStmt struct{ X Expr }
	// IfStmt is if cond then ... else ...; Else may be nil.
	IfStmt struct {
		Pos        Pos
		Cond       Expr
		Then, Else Stmt
	}
	// WhileStmt is while cond do ...
	WhileStmt struct {
		Pos  Pos
		Cond Expr
		Body Stmt
	}
	// RepeatStmt is repeat ... until cond.
	RepeatStmt struct {
		Pos  Pos
		List []Stmt
		Cond Expr
	}
	// ForStmt is for v := from to (or downto) to do ...; or for v in x do ...,
	// which has no To.
	ForStmt struct {
		Pos      Pos
		Var      *Ident
		From, To Expr
		Down     bool
		Body     Stmt
	}
	// EmptyStmt is nothing, as between two semicolons.
	EmptyStmt struct{}
)

func (*Block) isStmt()      {}
func (*AssignStmt) isStmt() {}
func (*CallStmt) isStmt()   {}
func (*IfStmt) isStmt()     {}
func (*WhileStmt) isStmt()  {}
func (*RepeatStmt) isStmt() {}
func (*ForStmt) isStmt()    {}
func (*EmptyStmt) isStmt()  {}

// Expr is an expression. Span is where a message about it points.
type Expr interface {
	Span() (at Pos, end int)
}

// span is the place of an expression's own token.
type span struct {
	At  Pos
	End int
}

// Span implements Expr.
func (s span) Span() (Pos, int) { return s.At, s.End }

// Expressions.
type (
	// Ident is a name.
	Ident struct {
		span
		Name string
	}
	// Literal is a number or a string.
	Literal struct {
		span
		Kind Kind // Int, Real, String
		Text string
	}
	// Unary is - x, + x or not x.
	Unary struct {
		span
		Op Kind
		X  Expr
	}
	// Binary is x op y; its position is the operator's.
	Binary struct {
		span
		Op   Kind
		X, Y Expr
	}
	// Paren is (x).
	Paren struct {
		span
		X Expr
	}
	// Call is name(args), or name() of a procedure.
	Call struct {
		span
		Name string
		Args []Expr
	}
	// Member is x.name or x.name(args).
	Member struct {
		span
		X      Expr
		Name   string
		Args   []Expr
		Called bool // has parentheses
	}
	// Index is x[i].
	Index struct {
		span
		X, I Expr
	}
	// Bad stands where no expression could be read.
	Bad struct{ span }
)
