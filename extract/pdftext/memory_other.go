//go:build !unix

package pdftext

// reserve returns n bytes of zeros.
func reserve(n int) ([]byte, error) { return make([]byte, n), nil }

func unreserve([]byte) {}

// ownDirectory is false where the rights of a directory are not known.
func ownDirectory(string) bool { return false }
