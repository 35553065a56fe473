package behaviour

// jsLinks makes hosts build their links by JavaScript: only a robot that runs
// the page finds them.
type jsLinks struct {
	Scope `yaml:",inline"`
}

func newJSLinks() *jsLinks { return &jsLinks{Scope{Hosts: .1, Pages: .5}} }

// Apply implements Behaviour.
func (b *jsLinks) Apply(q *Request, r *Reply) bool {
	if r.Page == nil || !b.ofPage(q) {
		return false
	}
	r.Page.Scripted = true
	return true
}
