package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"freshet": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			os.Exit(runArguments(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScript runs every story in testdata/script: a command line, its files,
// and what it must print.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Condition:           condition,
		Cmds:                scriptCommands(),
	})
}

// condition knows [lacks:PROGRAM], for stories to skip where a program is not
// installed or, of "userns", where namespaces are not allowed. In CI nothing may
// be lacking: the story runs and fails.
func condition(cond string) (bool, error) {
	what, ok := strings.CutPrefix(cond, "lacks:")
	if !ok {
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	if os.Getenv("CI") != "" {
		return false, nil
	}
	if what == "userns" {
		return exec.Command("unshare", "--user", "--map-root-user", "--net", "--mount", "true").Run() != nil, nil
	}
	_, err := exec.LookPath(what)
	return err != nil, nil
}
