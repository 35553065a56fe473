package check

// Kind is a kind of type.
type Kind uint8

// Kinds. Those up to Node are scalars: what fits one 64-bit word.
const (
	Invalid Kind = iota
	Integer
	Real
	Boolean
	String
	Node
	Nil // of the constant nil, which any node variable can hold
	Queue
	Sorted // queue(attribute): the greatest first
	Stack
	File
	AOQ
	Array
	Map
	None // of a procedure call
)

// Type is the type of a value.
type Type struct {
	Kind Kind
	Key  *Type // of a map
	Elem *Type
	By   *Attr // Sorted: the attribute; nil sorts by the element itself
}

// Scalar types.
var (
	integerType = &Type{Kind: Integer}
	realType    = &Type{Kind: Real}
	booleanType = &Type{Kind: Boolean}
	stringType  = &Type{Kind: String}
	nodeType    = &Type{Kind: Node}
	nilType     = &Type{Kind: Nil}
	noneType    = &Type{Kind: None}
	invalidType = &Type{Kind: Invalid}
	nodesType   = &Type{Kind: Queue, Elem: nodeType}
)

func (t *Type) isScalar() bool  { return t.Kind >= Integer && t.Kind <= Node }
func (t *Type) isNumeric() bool { return t.Kind == Integer || t.Kind == Real }

// String writes the type as a script does.
func (t *Type) String() string {
	switch t.Kind {
	case Integer:
		return "integer"
	case Real:
		return "real"
	case Boolean:
		return "boolean"
	case String:
		return "string"
	case Node:
		return "node"
	case Nil:
		return "nil"
	case Queue:
		return "queue of " + t.Elem.String()
	case Sorted:
		if t.By == nil {
			return "sorted queue of " + t.Elem.String()
		}
		return "queue(" + t.By.Name + ") of " + t.Elem.String()
	case Stack:
		return "stack of " + t.Elem.String()
	case File:
		return "file"
	case AOQ:
		return "aoq"
	case Array:
		return "array of " + t.Elem.String()
	case Map:
		return "map of " + t.Key.String() + " to " + t.Elem.String()
	case None:
		return "nothing"
	}
	return "unknown"
}

// sameType reports whether two types are the same.
func sameType(a, b *Type) bool {
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case Queue, Stack, Array:
		return sameType(a.Elem, b.Elem)
	case Sorted:
		return a.By == b.By && sameType(a.Elem, b.Elem)
	case Map:
		return sameType(a.Key, b.Key) && sameType(a.Elem, b.Elem)
	}
	return true
}
