package node

import (
	"context"
	"sync/atomic"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/throttle"
)

func (n *Node) newThrottle(c *config.Config) (err error) {
	n.throttle, err = throttle.New(c.Throttle.Thresholds, c.Throttle.Modes)
	return err
}

// noLimit is more agents than anybody has.
const noLimit = 1 << 30

// limit returns the robot's view of the controller: how many agents the
// indexer's queue allows. It asks the store at most every few calls, since the
// robot asks for every page.
func (n *Node) limit() func() int {
	var calls atomic.Uint64
	var last atomic.Int64
	return func() int {
		if t, m := n.throttle.Policy(); len(t) == 0 && len(m) == 0 {
			return noLimit
		}
		if calls.Add(1)%8 == 1 {
			if lag, err := n.indexer.Lag(context.Background()); err == nil {
				last.Store(lag)
			}
		}
		if agents, limited := n.throttle.Active(int(last.Load())); limited {
			return agents
		}
		return noLimit
	}
}

// SetThrottle implements console.Operator.
func (n *Node) SetThrottle(_ context.Context, thresholds, modes []int) error {
	if err := n.throttle.Set(thresholds, modes); err != nil {
		return err
	}
	n.robot.Wake()
	return nil
}

func (n *Node) throttleStatus(lag int64) *console.Throttle {
	thresholds, modes := n.throttle.Policy()
	agents, limited := n.throttle.Active(int(lag))
	if !limited {
		return nil
	}
	return &console.Throttle{Thresholds: thresholds, Modes: modes, Queue: int(lag), Active: agents}
}
