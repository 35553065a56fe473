package part

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Signs before a name in a key: files of a folder come before its subfolders,
// and nothing comes behind the subfolders.
const (
	fileSign   = "-"
	folderSign = "/"
	endSign    = "0" // the byte behind '/'
)

// nameSign separates the two forms in the key of a name that is not in NFC, and
// begins the key of a name that has this byte itself.
const nameSign = "\x01"

// Name returns what a file or folder name is ordered by: the bytes of its
// Unicode NFC form. A name that is not in NFC itself (as macOS writes) is set
// apart from its composed twin by its own bytes, so that different names of
// one folder never have one key: nameOf is the inverse.
func Name(name string) string {
	switch {
	case strings.Contains(name, nameSign):
		return nameSign + name
	case isASCII(name) || norm.NFC.IsNormalString(name):
		return name
	}
	return norm.NFC.String(name) + nameSign + name
}

// nameOf returns the name of a key.
func nameOf(key []byte) []byte {
	if _, name, ok := bytes.Cut(key, []byte(nameSign)); ok {
		return name
	}
	return key
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// FolderKey returns the key of a folder: for every name of its slash-separated
// path a sign, the name's key and a zero byte. The root's key is empty. Keys in
// byte order are the order of a depth-first walk over sorted listings, files
// before subfolders, so that every subtree is one range of keys.
func FolderKey(path string) string {
	if path == "" {
		return ""
	}
	var b strings.Builder
	b.Grow(len(path) + 2 + 2*strings.Count(path, "/"))
	for name := range strings.SplitSeq(path, "/") {
		b.WriteString(folderSign)
		b.WriteString(Name(name))
		b.WriteByte(0)
	}
	return b.String()
}

// FileKey returns the key of the file name in the folder with this key.
func FileKey(folderKey, name string) string {
	return folderKey + fileSign + Name(name) + "\x00"
}

// PathKey returns the key of a file given by its path.
func PathKey(path string) string {
	folder, name := SplitPath(path)
	return FileKey(FolderKey(folder), name)
}

// SplitPath cuts a path into its folder and its last name.
func SplitPath(path string) (folder, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// JoinPath is the inverse of SplitPath.
func JoinPath(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}

// KeyPath returns the path of a file or folder by its key.
func KeyPath(key []byte) string {
	out := make([]byte, 0, len(key))
	for len(key) > 0 {
		end := bytes.IndexByte(key, 0)
		if end < 0 {
			end = len(key)
		}
		name := nameOf(key[min(1, end):end])
		if len(out) > 0 {
			out = append(out, '/')
		}
		out = append(out, name...)
		key = key[min(end+1, len(key)):]
	}
	return string(out)
}
