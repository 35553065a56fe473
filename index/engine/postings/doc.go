// Package postings keeps, for one term, the documents that have it, how often
// and where.
//
// Numbers of documents ascend and are cut into blocks of 128. A block is coded
// by itself: gaps between documents, then codes (frequency and fields), and
// apart from both the gaps between positions. A list of more than one block
// begins with skip entries, one a block, so that a cursor passes over blocks
// without decoding them, and a merge copies them. The entry also bounds the
// impact of the block's documents, by which a search passes over blocks that
// cannot score enough (block-max indexes: Ding, Suel 2011).
//
//	dictionary entry -> list
//	                    +---------+--------+--------+-- skip entries
//	                    | block 0 | block 1| ...    |   first, last, offsets, impact, count
//	                    +---------+--------+--------+
//	                    | docs codes | docs codes | ...
//	                    +---------+--------+--------+
//	                    | positions | positions | ...
//	                    +---------+--------+--------+
//
// Readers of damaged data return ErrDamaged and never panic.
package postings
