// Package search answers queries over a list of segments.
//
// A query becomes a plan (plan.go), the same for all segments: which lists are
// united, intersected and excluded, and which words score. In each segment the
// plan becomes a tree of matchers (matcher.go) that fill windows of 4096
// documents as bits, so that any nesting of AND, OR and NOT is a few operations
// on words, and a sparse AND leaps over windows and blocks.
//
// Matches of a window are scored (score.go) from the bounds inwards, as
// block-max WAND (Ding, Suel 2011) and MaxScore (Turtle, Flood 1995) do: first
// the bound of all words over the window, then over the stretch between two
// block ends, then word by word within a document. What cannot reach the worst
// of the best results so far is counted but not scored. The bounds include the
// greatest popularity of a stretch, so the best results are exactly those that
// plain scoring of every match finds.
//
// Costs are bounded: words of a query (query.CheckBounds), expansions of a
// prefix, phrases that are verified; the context ends a search that takes too long.
package search
