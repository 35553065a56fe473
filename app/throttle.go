package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/throttle"
)

// newThrottle makes the controller. A policy that is wrong is logged and left
// out: without it the robot works, only without the bound.
func (n *Node) newThrottle(c *config.Config) {
	n.throttle = &throttle.Controller{}
	if err := n.throttle.Set(c.Throttle.Thresholds, c.Throttle.Modes); err != nil {
		n.log.Error("the throttle policy is ignored", "err", err)
	}
}

// unlimitedAgents is more agents than any machine runs.
const unlimitedAgents = 1 << 30

// Bounds of the goroutine that refreshes the indexer's lag: how often it asks
// the store, and how long one answer may take.
const (
	lagInterval = 200 * time.Millisecond
	lagPatience = 5 * time.Second
)

// throttleLag holds how many pages waited for the indexer when the store was
// asked last.
type throttleLag struct{ pages atomic.Int64 }

// throttleLimit returns how many agents the throttle allows. The robot calls it
// with its lock held, so it only reads what watchLag has stored.
func (n *Node) throttleLimit() int {
	if agents, limited := n.throttle.Active(int(n.lag.pages.Load())); limited {
		return agents
	}
	return unlimitedAgents
}

// watchLag refreshes the indexer's lag while a policy is set, until ctx ends.
// A store that does not answer leaves the last value.
func (n *Node) watchLag(ctx context.Context) error {
	t := time.NewTicker(lagInterval)
	defer t.Stop()
	for {
		if _, modes := n.throttle.Policy(); len(modes) > 0 {
			n.refreshLag(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// refreshLag asks the store once and wakes the robot if the allowed number of
// agents has changed.
func (n *Node) refreshLag(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lagPatience)
	defer cancel()
	lag, err := n.indexer.Lag(ctx)
	if err != nil {
		return // the indexer and the robot report a store that fails
	}
	before := n.throttleLimit()
	n.lag.pages.Store(lag)
	if n.throttleLimit() != before {
		n.robot.Wake()
	}
}

// SetThrottle implements console.Operator.
func (n *Node) SetThrottle(ctx context.Context, thresholds, modes []int) error {
	if err := n.throttle.Set(thresholds, modes); err != nil {
		return err
	}
	n.refreshLag(ctx)
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
