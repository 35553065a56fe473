package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/lab/strategy/order"
)

// openOrdering returns the ordering of a name, one of the robot's own or
// script:FILE. close is to be called after the crawl.
func openOrdering(ctx context.Context, name string, log *slog.Logger) (o crawl.Ordering, end func() error, err error) {
	if file, ok := strings.CutPrefix(name, order.Prefix); ok {
		o, script, err := order.Open(ctx, file, order.Options{Log: log})
		if err != nil {
			return nil, nil, command.Usagef("ordering %s: %w", name, err)
		}
		return o, script.Close, nil
	}
	newOrdering, ok := crawl.Orderings()[name]
	if !ok {
		return nil, nil, command.Usagef("ordering %s: unknown; there are %s", name, strings.Join(orderingNames(), ", "))
	}
	return newOrdering(), func() error { return nil }, nil
}

// orderingNames lists what can be named as an ordering.
func orderingNames() []string {
	return append(slices.Sorted(maps.Keys(crawl.Orderings())), order.Prefix+"FILE")
}
