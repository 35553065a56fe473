// Package dictionary keeps the terms of a segment in order, each with its list
// of postings.
//
// Terms are front-coded in blocks of 16: a term is the number of bytes that it
// shares with the term before it and the rest. A list of one document is part
// of the entry; other lists lie one after the other in another section, so an
// entry needs only its length. The block begins with the offset of its first
// list.
//
//	block   offset of the first list that is not inline (varint)
//	        up to 16 entries
//	entry   bytes shared with the term before (varint; 0 in the first)
//	        bytes that follow (varint), the bytes
//	        documents << 1 | has positions (varint)
//	        length of the list (varint)
//	        the list itself, if it has one document
//	index   offset of each block (4 bytes each), number of terms (4)
//
// A term is looked up by binary search over the first terms of the blocks. A
// finite state transducer was five times slower to build and no smaller.
package dictionary
