package contain

import (
	"unsafe"
)

// ByServer is the language's aoq: a queue of nodes for each server that has any.
// The queues are numbered 0 to Len()-1: a server whose queue was empty comes
// last; where a queue becomes empty the last one takes its number. So numbers
// stay as they are until the next push or pop.
//
// The nodes lie in chunks of one mapped file, each queue a list of them; memory
// holds 32 bytes a queue and 4 bytes a server.
type ByServer struct {
	env    *Env
	server func(node uint32) int
	where  []uint32 // of each server: its queue's number + 1
	queues []serverQueue
	total  int

	file *Mapped
	data []uint32 // chunks of the file
	used uint32   // chunks ever used; chunk 0 is none
	free uint32   // list of given back chunks

	order []uint32 // heap of servers, longest queue first, if anybody asked
	place []uint32 // of each queue's server in order
}

// A chunk is the number of the next one and nodes. The number is set when there
// is a next one: that of a queue's last chunk means nothing.
const (
	chunkWords = 64
	chunkNodes = chunkWords - 1
)

type serverQueue struct {
	server      uint32
	first, last uint32 // chunks
	at, end     uint32 // of the first chunk popped, of the last chunk filled
	n           int
}

// NewByServer returns an empty array of queues for so many servers.
func NewByServer(env *Env, servers int, server func(node uint32) int) (*ByServer, error) {
	if err := env.Memory(4 * int64(servers)); err != nil {
		return nil, err
	}
	return &ByServer{env: env, server: server, where: make([]uint32, servers), used: 1}, nil
}

// Len returns the number of queues that are not empty.
func (a *ByServer) Len() int { return len(a.queues) }

// Total returns the number of nodes in all queues.
func (a *ByServer) Total() int { return a.total }

// Server returns the server of a queue.
func (a *ByServer) Server(i int) int { return int(a.queues[i].server) }

// Find returns the number of a server's queue, -1 if it is empty.
func (a *ByServer) Find(server int64) int {
	if uint64(server) >= uint64(len(a.where)) {
		return -1
	}
	return int(a.where[server]) - 1
}

// Size returns the number of nodes of a queue.
func (a *ByServer) Size(i int) int { return a.queues[i].n }

// allocateChunk returns a free chunk.
func (a *ByServer) allocateChunk() (uint32, error) {
	if c := a.free; c != 0 {
		a.free = a.data[c*chunkWords]
		return c, nil
	}
	if need := int64(a.used+1) * chunkWords * 4; need > int64(len(a.data))*4 {
		if err := a.growMapping(need); err != nil {
			return 0, err
		}
	}
	a.used++
	return a.used - 1, nil
}

// growMapping makes the file hold need bytes, half as many more for later.
func (a *ByServer) growMapping(need int64) (err error) {
	n := (need + min(need, 256<<20) + 1<<16) &^ (1<<16 - 1)
	if a.file == nil {
		a.file, err = NewMapped(a.env, "aoq", n)
	} else {
		err = a.file.Grow(n)
	}
	if err != nil {
		return err
	}
	b := a.file.Data()
	a.data = unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
	return nil
}

// Push files a node under its server.
func (a *ByServer) Push(node int64) error {
	server := a.server(uint32(node))
	i := a.where[server]
	if i == 0 {
		c, err := a.allocateChunk()
		if err != nil {
			return err
		}
		if err := a.env.Memory(32); err != nil {
			return err
		}
		a.queues = append(a.queues, serverQueue{server: uint32(server), first: c, last: c})
		i = uint32(len(a.queues))
		a.where[server] = i
		if a.order != nil {
			a.order, a.place = append(a.order, i-1), append(a.place, uint32(len(a.order)))
		}
	}
	q := &a.queues[i-1]
	if q.end == chunkNodes {
		c, err := a.allocateChunk()
		if err != nil {
			return err
		}
		a.data[q.last*chunkWords] = c
		q.last, q.end = c, 0
	}
	a.data[q.last*chunkWords+1+q.end] = uint32(node)
	q.end++
	q.n++
	a.total++
	if a.order != nil {
		a.siftQueueUp(a.place[i-1])
	}
	return nil
}

// TopOf returns the first node of a queue.
func (a *ByServer) TopOf(i int) int64 {
	q := &a.queues[i]
	return int64(a.data[q.first*chunkWords+1+q.at])
}

// PopOf removes the first node of a queue.
func (a *ByServer) PopOf(i int) int64 {
	q := &a.queues[i]
	v := int64(a.data[q.first*chunkWords+1+q.at])
	q.at++
	q.n--
	a.total--
	switch {
	case q.n == 0:
		a.removeQueue(i)
		return v
	case q.at == chunkNodes:
		c := q.first
		q.first, q.at = a.data[c*chunkWords], 0
		a.data[c*chunkWords], a.free = a.free, c
	}
	if a.order != nil {
		a.siftQueueDown(a.place[i])
	}
	return v
}

// EachOf calls f with the nodes of a queue in order.
func (a *ByServer) EachOf(i int, f func(int64) error) error {
	q := a.queues[i]
	c, at := q.first, q.at
	for range q.n {
		if at == chunkNodes {
			c, at = a.data[c*chunkWords], 0
		}
		if err := f(int64(a.data[c*chunkWords+1+at])); err != nil {
			return err
		}
		at++
	}
	return nil
}

// Drop empties a queue: its number goes to the last one.
func (a *ByServer) Drop(i int) {
	a.total -= a.queues[i].n
	a.queues[i].n = 0
	a.removeQueue(i)
}

// removeQueue gives the chunks of queue i back and its number to the last queue.
func (a *ByServer) removeQueue(i int) {
	q := a.queues[i]
	for c := q.first; ; {
		next := a.data[c*chunkWords]
		a.data[c*chunkWords], a.free = a.free, c
		if c == q.last {
			break
		}
		c = next
	}
	a.where[q.server] = 0
	if a.order != nil {
		a.removeFromHeap(uint32(i))
	}
	last := len(a.queues) - 1
	if i != last {
		a.queues[i] = a.queues[last]
		a.where[a.queues[i].server] = uint32(i + 1)
		if a.order != nil {
			a.place[i] = a.place[last]
			a.order[a.place[i]] = uint32(i)
		}
	}
	a.queues = a.queues[:last]
	if a.order != nil {
		a.place = a.place[:last]
	}
	_ = a.env.Memory(-32)
}

// Clear empties all queues.
func (a *ByServer) Clear() error {
	_ = a.env.Memory(-32 * int64(len(a.queues)))
	for i := range a.queues {
		a.where[a.queues[i].server] = 0
	}
	a.queues, a.total, a.used, a.free = a.queues[:0], 0, 1, 0
	if a.order != nil {
		a.order, a.place = a.order[:0], a.place[:0]
	}
	return nil
}

// Free gives back what the queues hold.
func (a *ByServer) Free() error {
	err := a.Clear()
	_ = a.env.Memory(-4 * int64(len(a.where)))
	if a.file != nil {
		err = a.file.Close()
		a.file, a.data = nil, nil
	}
	return err
}

// Largest returns the number of the queue with most nodes; of several, that of
// the lowest server. From the first call on the queues are kept in a heap.
func (a *ByServer) Largest() int {
	if a.order == nil {
		a.order, a.place = make([]uint32, 0, len(a.queues)), make([]uint32, len(a.queues))
		for i := range a.queues {
			a.order = append(a.order, uint32(i))
			a.place[i] = uint32(i)
			a.siftQueueUp(uint32(i))
		}
	}
	return int(a.order[0])
}

// queueBefore is the order of the heap; i and j are numbers of queues.
func (a *ByServer) queueBefore(i, j uint32) bool {
	p, q := &a.queues[i], &a.queues[j]
	return p.n > q.n || p.n == q.n && p.server < q.server
}

func (a *ByServer) swapQueues(x, y uint32) {
	a.order[x], a.order[y] = a.order[y], a.order[x]
	a.place[a.order[x]], a.place[a.order[y]] = x, y
}

func (a *ByServer) siftQueueUp(x uint32) {
	for x > 0 && a.queueBefore(a.order[x], a.order[(x-1)/2]) {
		a.swapQueues(x, (x-1)/2)
		x = (x - 1) / 2
	}
}

func (a *ByServer) siftQueueDown(x uint32) {
	for {
		c := 2*x + 1
		if c >= uint32(len(a.order)) {
			return
		}
		if c+1 < uint32(len(a.order)) && a.queueBefore(a.order[c+1], a.order[c]) {
			c++
		}
		if !a.queueBefore(a.order[c], a.order[x]) {
			return
		}
		a.swapQueues(x, c)
		x = c
	}
}

// removeFromHeap takes queue i out of the heap.
func (a *ByServer) removeFromHeap(i uint32) {
	x, last := a.place[i], uint32(len(a.order)-1)
	if x != last {
		a.swapQueues(x, last)
	}
	a.order = a.order[:last]
	if x < last {
		a.siftQueueUp(x)
		a.siftQueueDown(x)
	}
}
