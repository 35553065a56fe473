//go:build unix

package main

import "syscall"

// keepFilesPrivate lets this process make files and folders that others cannot
// read: stores, archives and indexes hold what only some may see.
func keepFilesPrivate() { syscall.Umask(0o077) }
