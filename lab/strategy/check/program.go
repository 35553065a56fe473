// Package check finds what is wrong with a parsed strategy before it runs, and
// turns it into a typed program: every name resolved, every conversion explicit.
package check

import "github.com/freshet/freshet/lab/strategy/syntax"

// Program is a script that was found correct.
type Program struct {
	Attrs   []*Attr // declared ones and visited, in order of their columns
	Globals []*Var
	Frame   Frame // of the globals
	Procs   []*Proc
	Body    []Stmt
	Uses    Uses
}

// Uses says which costly services a program needs.
type Uses struct{ Depth, Age, Server bool }

// Builtin says which property of a node an Attr is.
type Builtin uint8

// Properties of nodes.
const (
	Declared Builtin = iota
	Outlinks
	Inlinks
	URL
	Server
	Depth
	Age
	Size
)

// Attr is an attribute of nodes: a declared one, kept in a column, or one that
// the web gives.
type Attr struct {
	Name    string
	Type    *Type
	Builtin Builtin
	Column  int // index in Program.Attrs if declared
	used    bool
	at      syntax.Pos
}

// Var is a variable. Scalars that are not strings live in words, strings and
// containers in slots of their own; Slot counts within its kind, from the start
// of the frame if Local.
type Var struct {
	Name  string
	Type  *Type
	Local bool
	ByRef bool // a parameter that holds the place of a variable
	Slot  int
	Path  string // of a file

	at             syntax.Pos
	read, assigned bool
	loop           bool // variable of a running for
	param          bool
}

// Proc is a procedure or function.
type Proc struct {
	Name   string
	Params []*Var
	Locals []*Var // parameters and Result included
	Result *Var   // nil of a procedure
	Body   []Stmt
	Frame  Frame
	at     syntax.Pos
}

// Frame says how many slots of each kind a procedure needs; Refs and StringRefs
// are those of var parameters.
type Frame struct{ Words, Strings, Objects, Refs, StringRefs int }

// Op is what an expression does.
type Op uint8

// Operations. The type of operands decides between the variants of arithmetic
// and comparison.
const (
	OpConst Op = iota // Int, Real or Text by Type
	OpLoad            // Var
	OpAttr            // Attr of Args[0]
	OpNeg             // -x
	OpAdd             // also of strings
	OpSub
	OpMul
	OpDiv
	OpMod
	OpLess
	OpLessEqual
	OpEqual
	OpNotEqual
	OpAnd // short-circuit
	OpOr
	OpNot
	OpIntToReal
	OpBoolToInt
	OpIntToBool
	OpMethod  // Method of container Args[0]
	OpCall    // Proc(Args)
	OpBuiltin // Builtin function Text(Args)
	OpIndex   // Args[0][Args[1]], array or map
)

// Expr is a typed expression.
type Expr struct {
	Op   Op
	Type *Type
	Pos  syntax.Pos
	End  int
	Args []*Expr
	Int  int64   // also booleans, 0 or 1, and nil, -1
	Real float64 // of a real constant
	Text string  // string constant, method or builtin
	Var  *Var
	Attr *Attr
	Proc *Proc
}

// Stmt is a typed statement.
type Stmt interface{ typedStmt() }

// Statements.
type (
	// Assign is Left := Right: a variable, an attribute or an element; containers
	// are copied.
	Assign struct{ Left, Right *Expr }
	// Do evaluates X and forgets its value.
	Do struct{ X *Expr }
	// If chooses.
	If struct {
		Cond       *Expr
		Then, Else []Stmt
	}
	// While repeats while Cond holds; with Until: until Cond holds, once at least.
	While struct {
		Pos   syntax.Pos
		Cond  *Expr
		Body  []Stmt
		Until bool
	}
	// Count is for v := From to To.
	Count struct {
		Pos      syntax.Pos
		Var      *Var
		From, To *Expr
		Down     bool
		Body     []Stmt
	}
	// Each is for v in X: links, a file, an array or the keys of a map.
	Each struct {
		Pos  syntax.Pos
		Var  *Var
		X    *Expr
		Body []Stmt
	}
	// Jump leaves a loop (break), its turn (continue), a procedure (exit) or the
	// script (halt).
	Jump struct {
		Pos syntax.Pos
		How Jumps
	}
)

// Jumps are the ways to leave.
type Jumps uint8

// Ways to leave.
const (
	Break Jumps = iota + 1
	Continue
	Exit
	Halt
)

func (*Assign) typedStmt() {}
func (*Do) typedStmt()     {}
func (*If) typedStmt()     {}
func (*While) typedStmt()  {}
func (*Count) typedStmt()  {}
func (*Each) typedStmt()   {}
func (*Jump) typedStmt()   {}
