// Package segment is the file of an immutable part of an index: terms with
// their postings, columns of numbers and keywords by document, identifiers and
// stored texts. It knows nothing of words or ranking: a schema above it decides
// what a term or a document is.
//
//	+--------------------------+
//	| magic (16 bytes)         |
//	+--------------------------+
//	| texts                    |  zstd blocks of 16 KB of documents
//	| text index               |  per block: first document (4), offset (8)
//	| lists                    |  postings, see package postings
//	| terms, term index        |  see package dictionary
//	| ids, id offsets          |  identifiers as they are; end of each (4)
//	| id hashes, id documents  |  XXH3 in ascending order (8); document (4)
//	| lengths                  |  title, URL, body in a byte each, zero (4)
//	| ends                     |  position behind the title (2), behind the URL (2)
//	| dates, sizes             |  seconds since 1970, bytes (8 each)
//	| popularity               |  when the segment was written (1)
//	| host, type, lang, kind   |  keyword columns, see below
//	+--------------------------+
//	| section table            |  per section: kind (4), zero (4), offset (8), length (8), XXH3 (8)
//	| trailer (80 bytes)       |  see trailer.append
//	+--------------------------+
//
// Sections begin at multiples of 8, and eight zero bytes follow each, so that a
// decoder may read whole words. Numbers are little endian.
//
// A keyword column is the number of values (4), the width of an ordinal in
// bytes (4: 1, 2 or 4), the end of each value (4 each), the values, zeros up to
// a multiple of 4 from the column's beginning, and one ordinal a document.
//
// Every section has a checksum; the table and the trailer have one, too. Open
// checks the size, the trailer, the table and the columns; Verify checks the rest.
package segment
