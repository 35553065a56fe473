package run

import (
	"github.com/freshet/freshet/lab/strategy/check"
	"github.com/freshet/freshet/lab/strategy/contain"
)

// fixed returns the container of a global variable, nil of anything else: what
// is known now need not be looked up in every turn.
func (c *compiler) fixed(e *check.Expr) object {
	if e.Op == check.OpLoad && !e.Var.Local && isObject(e.Type) {
		return c.m.objs[e.Var.Slot]
	}
	return nil
}

// object compiles an expression of a container type.
func (c *compiler) object(e *check.Expr) func() object {
	m, p := c.m, at(e)
	if o := c.fixed(e); o != nil {
		return func() object { return o }
	}
	switch e.Op {
	case check.OpLoad:
		slot := e.Var.Slot
		return func() object { return m.f.objs[slot] }
	case check.OpAttr:
		list := c.linksOf(e)
		return func() object { return &links{list: list()} }
	}
	// top(i) and pop(i) of an aoq
	obj, index := c.object(e.Args[0]), c.word(e.Args[1])
	pop := e.Text == "pop"
	return func() object {
		a := obj().(*contain.ByServer)
		i := m.queueOf(p, a, index())
		v := serverQueue{a, i}
		if !pop {
			return v
		}
		m.step(p, int64(v.Len()))
		l := m.snapshot(p, v)
		a.Drop(i)
		return l
	}
}

// queueOf checks the number of a queue of an aoq.
func (m *machine) queueOf(p place, a *contain.ByServer, i int64) int {
	if uint64(i) >= uint64(a.Len()) {
		m.failed(p, "queue %d of an aoq with %d", i, a.Len())
	}
	return int(i)
}

// method compiles a method that has a value.
func (c *compiler) method(e *check.Expr) wordFunc {
	recv := e.Args[0]
	if e.Text == "contains" {
		m, p, node, text := c.m, at(e), c.known(recv), c.text(e.Args[1])
		return func() int64 {
			u, s := node(), text()
			m.step(p, int64(len(s))/64)
			return word(m.opt.Pages.Contains(u, s))
		}
	}
	switch {
	case e.Text == "size":
		return c.size(recv)
	case recv.Type.Kind == check.AOQ:
		return c.aoqMethod(e)
	case e.Text == "has":
		obj, key := c.object(recv), c.elem(e.Args[1])
		return func() int64 {
			k := key()
			_, ok := obj().(*table).cells[k]
			return word(ok)
		}
	}
	return c.take(e)
}

// size compiles x.size().
func (c *compiler) size(recv *check.Expr) wordFunc {
	switch o := c.fixed(recv).(type) {
	case nil:
	case *nodeQueue:
		return func() int64 { return int64(o.Len()) }
	default:
		return func() int64 { return int64(o.Len()) }
	}
	if recv.Op == check.OpAttr {
		list := c.linksOf(recv)
		return func() int64 { return int64(len(list())) }
	}
	obj := c.object(recv)
	return func() int64 { return int64(obj().Len()) }
}

// take compiles pop and top of queues, stacks, files and arrays.
func (c *compiler) take(e *check.Expr) wordFunc {
	m, p, name := c.m, at(e), e.Text
	empty := func() { m.failed(p, "%s of an empty container", name) }
	if q, ok := c.fixed(e.Args[0]).(*nodeQueue); ok && name == "pop" {
		return func() int64 {
			if q.Len() == 0 {
				empty()
			}
			v, err := q.Pop()
			if err != nil {
				m.check(p, err)
			}
			return v
		}
	}
	obj := c.object(e.Args[0])
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
			m.check(p, err)
		}
		return v
	}
}

// aoqMethod compiles server(i), find(s), largest() and total() of an aoq.
func (c *compiler) aoqMethod(e *check.Expr) wordFunc {
	m, p, obj := c.m, at(e), c.object(e.Args[0])
	switch e.Text {
	case "total":
		return func() int64 { return int64(obj().(*contain.ByServer).Total()) }
	case "largest":
		return func() int64 {
			a := obj().(*contain.ByServer)
			if a.Len() == 0 {
				m.failed(p, "largest of an empty aoq")
			}
			return int64(a.Largest())
		}
	}
	x := c.word(e.Args[1])
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
	m, p, recv := c.m, at(e), e.Args[0]
	switch e.Text {
	case "push":
		return c.push(e)
	case "clear":
		obj := c.object(recv)
		return func() signal {
			o := obj()
			m.step(p, int64(o.Len())/1024)
			m.check(p, o.Clear())
			return goOn
		}
	case "resize":
		obj, n := c.object(recv), c.word(e.Args[1])
		return func() signal {
			size := n()
			if size < 0 {
				m.failed(p, "an array cannot have %d elements", size)
			}
			a := obj().(*array)
			m.step(p, max(0, size-int64(a.Len()))/64)
			m.check(p, a.resize(size))
			return goOn
		}
	case "remove":
		obj, key := c.object(recv), c.elem(e.Args[1])
		return func() signal {
			k := key()
			obj().(*table).remove(k)
			return goOn
		}
	case "pop":
		if recv.Type.Kind == check.AOQ { // empties the queue
			obj, index := c.object(recv), c.word(e.Args[1])
			return func() signal {
				a := obj().(*contain.ByServer)
				i := m.queueOf(p, a, index())
				m.step(p, int64(a.Size(i))/64)
				a.Drop(i)
				return goOn
			}
		}
	case "top":
		if recv.Type.Kind == check.AOQ {
			obj := c.object(e)
			return func() signal { obj(); return goOn }
		}
	}
	x := c.method(e)
	return func() signal { x(); return goOn }
}

// push compiles x.push(v).
func (c *compiler) push(e *check.Expr) stmtFunc {
	m, p := c.m, at(e)
	var val wordFunc
	if e.Args[1].Type.Kind == check.Node { // nil is no element
		node := c.known(e.Args[1])
		val = func() int64 { return int64(node()) }
	} else {
		val = c.elem(e.Args[1])
	}
	switch q := c.fixed(e.Args[0]).(type) {
	case *nodeQueue:
		return func() signal {
			if err := q.Push(val()); err != nil {
				m.check(p, err)
			}
			return goOn
		}
	case contain.Sequence:
		return func() signal {
			if err := q.Push(val()); err != nil {
				m.check(p, err)
			}
			return goOn
		}
	}
	obj := c.object(e.Args[0])
	return func() signal {
		v := val()
		m.check(p, obj().(interface{ Push(int64) error }).Push(v))
		return goOn
	}
}
