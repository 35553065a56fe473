package syntax

import "strconv"

// Dialect says how a script is read.
type Dialect uint8

// Dialects.
const (
	Strict Dialect = iota // relations bind tighter than and/or; our words are reserved
	Thesis                // relations bind looser than and/or; only the thesis's words
)

// String returns the dialect's name.
func (d Dialect) String() string {
	if d == Thesis {
		return "thesis"
	}
	return "strict"
}

// Pos is a place in a script: line and column count from 1, columns in
// characters.
type Pos struct{ Line, Col int }

// Kind is the kind of a token.
type Kind uint8

// Kinds of tokens. Keywords stand between keywordsBegin and keywordsEnd, those
// that only the strict dialect reserves after oursBegin.
const (
	EOF Kind = iota
	Word
	Int
	Real
	String

	Semicolon
	Colon
	Comma
	Dot
	LParen
	RParen
	LBracket
	RBracket
	Assign
	Plus
	Minus
	Star
	Slash
	Less
	LessEqual
	Equal
	NotEqual
	GreaterEqual
	Greater

	And
	Or
	Not
	Attributes
	Var
	Begin
	End
	If
	Then
	Else
	While
	Do
	IntegerType
	BooleanType
	NodeType
	Queue
	Of
	Stack
	File
	AOQ

	Const
	Procedure
	Function
	For
	In
	To
	Downto
	Repeat
	Until
	Div
	Mod
	RealType
	StringType
	Array
	Map
	Program

	kinds
)

const (
	keywordsBegin = And
	oursBegin     = Const
)

var kindNames = [kinds]string{
	EOF: "end of the script", Word: "name", Int: "number", Real: "number", String: "string",
	Semicolon: ";", Colon: ":", Comma: ",", Dot: ".", LParen: "(", RParen: ")", LBracket: "[", RBracket: "]", Assign: ":=",
	Plus: "+", Minus: "-", Star: "*", Slash: "/", Less: "<", LessEqual: "<=", Equal: "=", NotEqual: "<>", GreaterEqual: ">=", Greater: ">",
	And: "and", Or: "or", Not: "not", Attributes: "attributes", Var: "var", Begin: "begin", End: "end", If: "if", Then: "then", Else: "else",
	While: "while", Do: "do", IntegerType: "integer", BooleanType: "boolean", NodeType: "node", Queue: "queue", Of: "of", Stack: "stack",
	File: "file", AOQ: "aoq",
	Const: "const", Procedure: "procedure", Function: "function", For: "for", In: "in", To: "to", Downto: "downto", Repeat: "repeat",
	Until: "until", Div: "div", Mod: "mod", RealType: "real", StringType: "string", Array: "array", Map: "map", Program: "program",
}

// String returns the token as it is written, or what it is.
func (k Kind) String() string { return kindNames[k] }

// Keywords returns the reserved words of a dialect.
func Keywords(d Dialect) []string {
	var ws []string
	for k := keywordsBegin; k < kinds; k++ {
		if d == Strict || k < oursBegin {
			ws = append(ws, kindNames[k])
		}
	}
	return ws
}

// keywordKind returns the kind of a lower-case word: a reserved word or a name.
func keywordKind(word string, d Dialect) Kind {
	for k := keywordsBegin; k < kinds; k++ {
		if kindNames[k] == word && (d == Strict || k < oursBegin) {
			return k
		}
	}
	return Word
}

// Token is one token of a script.
type Token struct {
	Kind Kind
	Pos  Pos
	End  int    // column after the last character, on the same line
	Text string // names in lower case; strings without quotes; as written otherwise
}

// String returns the token as a message shows it.
func (t Token) String() string {
	switch t.Kind {
	case Word, Int, Real:
		return strconv.Quote(t.Text)
	case String:
		return "string " + strconv.Quote(t.Text)
	case EOF:
		return kindNames[EOF]
	default:
		return strconv.Quote(kindNames[t.Kind])
	}
}
