package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptCommands are what stories know beside testscript's own commands.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){"site": scriptSite, "eventually": scriptEventually}
}

// scriptSite serves a folder of the story as a web site on loopback: site NAME
// FOLDER sets $NAME to its origin and writes each request and status to
// FOLDER.log. A file that begins with a line "HTTP CODE" is sent with the
// headers that follow it up to an empty line. As long as there is a file
// FOLDER.hold, requests are let wait.
func scriptSite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: site NAME FOLDER")
	}
	dir := ts.MkAbs(args[1])
	log, err := os.OpenFile(dir+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	ts.Check(err)
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for held(dir) && r.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		status := scriptFile(w, r, dir)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(log, status, r.URL.RequestURI())
	}))
	ts.Defer(func() { srv.Close(); log.Close() })
	ts.Setenv(args[0], srv.URL)
}

// held reports whether requests to the site of a folder are to wait.
func held(dir string) bool {
	_, err := os.Stat(dir + ".hold")
	return err == nil
}

// scriptFile answers with a file and returns the status.
func scriptFile(w http.ResponseWriter, r *http.Request, dir string) int {
	name := filepath.Join(dir, filepath.FromSlash(r.URL.Path))
	if strings.HasSuffix(r.URL.Path, "/") {
		name = filepath.Join(name, "index.html")
	}
	b, err := os.ReadFile(name)
	if err != nil {
		http.NotFound(w, r)
		return http.StatusNotFound
	}
	status := http.StatusOK
	if head, body, ok := strings.Cut(string(b), "\n\n"); ok && strings.HasPrefix(head, "HTTP ") {
		lines := strings.Split(head, "\n")
		_, _ = fmt.Sscanf(lines[0], "HTTP %d", &status)
		for _, l := range lines[1:] {
			k, v, _ := strings.Cut(l, ": ")
			w.Header().Set(k, v)
		}
		b = []byte(body)
	} else {
		tag := fmt.Sprintf("%q", fmt.Sprintf("%d-%.20s", len(b), b))
		w.Header().Set("ETag", strings.ReplaceAll(tag, "\\", "_"))
		if r.Header.Get("If-None-Match") == w.Header().Get("ETag") {
			w.WriteHeader(http.StatusNotModified)
			return http.StatusNotModified
		}
		if filepath.Ext(name) == ".html" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(b)
	return status
}

// scriptEventually runs a program again and again until what it prints matches:
// eventually REGEXP PROGRAM ARGS.
func scriptEventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually REGEXP PROGRAM ARGS...")
	}
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	out := ""
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		err = ts.Exec(args[1], args[2:]...)
		out = ts.ReadFile("stdout")
		if err == nil && re.MatchString(out) {
			return
		}
	}
	ts.Fatalf("%v never printed %s; at last %v:\n%s%s", args[1:], args[0], err, out, ts.ReadFile("stderr"))
}
