// Package command holds what all commands of the command line share: the flags
// that every command understands, the streams it reads and writes, its output as
// JSON or as a table, and the errors that decide the exit code. The product's
// commands are in cmd/freshet, the lab's in lab/cli.
package command

import (
	"fmt"
	"io"
)

// Exit codes of every command.
const (
	ExitOK     = 0
	ExitFailed = 1 // the work was understood but failed
	ExitUsage  = 2 // wrong usage or wrong input
)

// Globals are the flags that every command understands, and its streams.
type Globals struct {
	Data    string `help:"Data directory (default: $$FRESHET_DATA or the user's data directory)." placeholder:"DIR" env:"FRESHET_DATA"`
	Quiet   bool   `help:"No progress on standard error."`
	JSON    bool   `help:"Print one JSON object on standard output."`
	Verbose bool   `help:"More in the log." short:"v"`

	Stdin  io.Reader `kong:"-"`
	Stdout io.Writer `kong:"-"`
	Stderr io.Writer `kong:"-"`
}

// UsageError marks an error as the user's: wrong usage or wrong input. The
// command exits with ExitUsage.
type UsageError struct{ Err error }

// Error implements error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error that was marked.
func (e UsageError) Unwrap() error { return e.Err }

// Usagef returns a formatted UsageError.
func Usagef(format string, args ...any) error {
	return UsageError{fmt.Errorf(format, args...)}
}

// ExitStatus is the exit code of a program that a command ran and that has
// printed its own error.
type ExitStatus int

// Error implements error.
func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
