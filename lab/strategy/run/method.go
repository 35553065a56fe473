package run

import (
	"github.com/freshet/freshet/lab/strategy/check"
	"github.com/freshet/freshet/lab/strategy/contain"
)

// globalContainer returns the container of a global variable, nil of anything else: what
// is known now need not be looked up in every turn.
func (c *compiler) globalContainer(e *check.Expr) object {
	if e.Op == check.OpLoad && !e.Var.Local && isObject(e.Type) {
		return c.m.objs[e.Var.Slot]
	}
	return nil
}

// compileContainer compiles an expression of a container type.
func (c *compiler) compileContainer(e *check.Expr) func() object {
	m, p := c.m, placeOf(e)
	if o := c.globalContainer(e); o != nil {
		return func() object { return o }
	}
	switch e.Op {
	case check.OpLoad:
		slot := e.Var.Slot
		return func() object { return m.f.objs[slot] }
	case check.OpAttr:
		list := c.compileLinks(e)
		return func() object { return &links{list: list()} }
	}
	// top(i) and pop(i) of an aoq
	obj, index := c.compileContainer(e.Args[0]), c.compileWord(e.Args[1])
	pop := e.Text == "pop"
	return func() object {
		a := obj().(*contain.ByServer)
		i := m.queueOf(p, a, index())
		v := serverQueue{a, i}
		if !pop {
			return v
		}
		m.countSteps(p, int64(v.Len()))
		l := m.copyServerQueue(p, v)
		a.Drop(i)
		return l
	}
}

// queueOf checks the number of a queue of an aoq.
func (m *machine) queueOf(p place, a *contain.ByServer, i int64) int {
	if uint64(i) >= uint64(a.Len()) {
		m.failAt(p, "queue %d of an aoq with %d", i, a.Len())
	}
	return int(i)
}

// compileMethodValue compiles a method that has a value.
func (c *compiler) compileMethodValue(e *check.Expr) wordFunc {
	recv := e.Args[0]
	if e.Text == "contains" {
		m, p, node, text := c.m, placeOf(e), c.compileKnownNode(recv), c.compileText(e.Args[1])
		return func() int64 {
			u, s := node(), text()
			m.countSteps(p, int64(len(s))/64)
			return boolToWord(m.opt.Pages.Contains(u, s))
		}
	}
	switch {
	case e.Text == "size":
		return c.compileSize(recv)
	case recv.Type.Kind == check.AOQ:
		return c.aoqMethod(e)
	case e.Text == "has":
		obj, key := c.compileContainer(recv), c.compileElement(e.Args[1])
		return func() int64 {
			k := key()
			_, ok := obj().(*table).cells[k]
			return boolToWord(ok)
		}
	}
	return c.compilePop(e)
}

// compileSize compiles x.size().
func (c *compiler) compileSize(recv *check.Expr) wordFunc {
	switch o := c.globalContainer(recv).(type) {
	case nil:
	case *nodeQueue:
		return func() int64 { return int64(o.Len()) }
	default:
		return func() int64 { return int64(o.Len()) }
	}
	if recv.Op == check.OpAttr {
		list := c.compileLinks(recv)
		return func() int64 { return int64(len(list())) }
	}
	obj := c.compileContainer(recv)
	return func() int64 { return int64(obj().Len()) }
}

// compilePop compiles pop and top of queues, stacks, files and arrays.
func (c *compiler) compilePop(e *check.Expr) wordFunc {
	m, p, name := c.m, placeOf(e), e.Text
	empty := func() { m.failAt(p, "%s of an empty container", name) }
	if q, ok := c.globalContainer(e.Args[0]).(*nodeQueue); ok && name == "pop" {
		return func() int64 {
			if q.Len() == 0 {
				empty()
			}
			v, err := q.Pop()
			if err != nil {
				m.failOnError(p, err)
			}
			return v
		}
	}
	obj := c.compileContainer(e.Args[0])
	pop := name == "pop"
	return func() int64 {
		s := obj().(contain.Sequence)
		if s.Len() == 0 {
			empty()
		}
		var v int64
		var err error
		if pop {
			v, err = s.Pop()
		} else {
			v, err = s.Top()
		}
		if err != nil {
			m.failOnError(p, err)
		}
		return v
	}
}

// aoqMethod compiles server(i), find(s), largest() and total() of an aoq.
func (c *compiler) aoqMethod(e *check.Expr) wordFunc {
	m, p, obj := c.m, placeOf(e), c.compileContainer(e.Args[0])
	switch e.Text {
	case "total":
		return func() int64 { return int64(obj().(*contain.ByServer).Total()) }
	case "largest":
		return func() int64 {
			a := obj().(*contain.ByServer)
			if a.Len() == 0 {
				m.failAt(p, "largest of an empty aoq")
			}
			return int64(a.Largest())
		}
	}
	x := c.compileWord(e.Args[1])
	if e.Text == "find" {
		return func() int64 {
			server := x()
			return int64(obj().(*contain.ByServer).Find(server))
		}
	}
	return func() int64 {
		i := x()
		a := obj().(*contain.ByServer)
		return int64(a.Server(m.queueOf(p, a, i)))
	}
}

// doMethod compiles a method as a statement.
func (c *compiler) doMethod(e *check.Expr) stmtFunc {
	m, p, recv := c.m, placeOf(e), e.Args[0]
	switch e.Text {
	case "push":
		return c.compilePush(e)
	case "clear":
		obj := c.compileContainer(recv)
		return func() signal {
			o := obj()
			m.countSteps(p, int64(o.Len())/1024)
			m.failOnError(p, o.Clear())
			return goOn
		}
	case "resize":
		obj, n := c.compileContainer(recv), c.compileWord(e.Args[1])
		return func() signal {
			size := n()
			if size < 0 {
				m.failAt(p, "an array cannot have %d elements", size)
			}
			a := obj().(*array)
			m.countSteps(p, max(0, size-int64(a.Len()))/64)
			m.failOnError(p, a.resizeArray(size))
			return goOn
		}
	case "remove":
		obj, key := c.compileContainer(recv), c.compileElement(e.Args[1])
		return func() signal {
			k := key()
			obj().(*table).removeCell(k)
			return goOn
		}
	case "pop":
		if recv.Type.Kind == check.AOQ { // empties the queue
			obj, index := c.compileContainer(recv), c.compileWord(e.Args[1])
			return func() signal {
				a := obj().(*contain.ByServer)
				i := m.queueOf(p, a, index())
				m.countSteps(p, int64(a.Size(i))/64)
				a.Drop(i)
				return goOn
			}
		}
	case "top":
		if recv.Type.Kind == check.AOQ {
			obj := c.compileContainer(e)
			return func() signal { obj(); return goOn }
		}
	}
	x := c.compileMethodValue(e)
	return func() signal { x(); return goOn }
}

// compilePush compiles x.push(v).
func (c *compiler) compilePush(e *check.Expr) stmtFunc {
	m, p := c.m, placeOf(e)
	var val wordFunc
	if e.Args[1].Type.Kind == check.Node { // nil is no element
		node := c.compileKnownNode(e.Args[1])
		val = func() int64 { return int64(node()) }
	} else {
		val = c.compileElement(e.Args[1])
	}
	switch q := c.globalContainer(e.Args[0]).(type) {
	case *nodeQueue:
		return func() signal {
			if err := q.Push(val()); err != nil {
				m.failOnError(p, err)
			}
			return goOn
		}
	case contain.Sequence:
		return func() signal {
			if err := q.Push(val()); err != nil {
				m.failOnError(p, err)
			}
			return goOn
		}
	}
	obj := c.compileContainer(e.Args[0])
	return func() signal {
		v := val()
		m.failOnError(p, obj().(interface{ Push(int64) error }).Push(v))
		return goOn
	}
}
