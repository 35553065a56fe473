// Package syntax reads the strategy language: lexer, tree and a recursive
// descent parser that recovers from errors and reports several at once.
//
// The language is a small Pascal. It comes from a 2008 thesis on strategies of
// web robots, whose grammar was made with flex and bison; a hand-written parser
// gives better messages. Two dialects differ in little:
//
//   - Thesis: relations bind looser than and/or, as in Pascal, and only the
//     thesis's own words are reserved.
//   - Strict (the default): relations bind tighter than and/or, so that
//     a < b and c < d means what it says, and our additions are reserved words.
//
// A tree prints itself as a script that parses to the same tree (Format).
package syntax
