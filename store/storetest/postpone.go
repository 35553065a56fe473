package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
)

// testPostpone: a host that was put off is not claimed before, has all its pages then,
// and its lease is gone.
func testPostpone(t *testing.T, open Opener) {
	s := open(t)
	p, ok := s.(store.Postponer)
	if !ok {
		t.Skip("no store.Postponer")
	}
	ctx := context.Background()
	mustAdd(t, s, "http://h.example/1", "http://h.example/2")
	l := mustClaim(t, s, start)
	if n := len(mustTake(t, s, l, 1, start)); n != 1 {
		t.Fatalf("%d pages were taken", n)
	}
	next := start.Add(10 * time.Second)
	if err := p.Postpone(ctx, l, next); err != nil {
		t.Fatal(err)
	}
	if err := p.Postpone(ctx, l, next); !errors.Is(err, store.ErrLease) {
		t.Errorf("twice: %v", err)
	}
	l, at, err := s.Claim(ctx, "n1", next.Add(-time.Millisecond), ttl)
	if l != nil || err != nil || !at.Equal(next) {
		t.Errorf("claimed before its time: %v, next %v, %v", l, at, err)
	}
	if l = mustClaim(t, s, next); l == nil {
		t.Fatal("not claimed when its time had come")
	}
	if got := joinURLs(mustTake(t, s, l, 9, next)); got != "http://h.example/1 http://h.example/2" {
		t.Errorf("pages %s", got)
	}
}

// testHostRecord: the record of one host is as of its last commit.
func testHostRecord(t *testing.T, open Opener) {
	s := open(t)
	r, ok := s.(store.HostReader)
	if !ok {
		t.Skip("no store.HostReader")
	}
	ctx := context.Background()
	if _, err := r.Host(ctx, "h.example"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown host: %v", err)
	}
	mustAdd(t, s, "http://h.example/1")
	if h, err := r.Host(ctx, "h.example"); err != nil || h.Name != "h.example" || !h.Next.IsZero() {
		t.Errorf("a host that was not visited: %+v, %v", h, err)
	}
	l := mustClaim(t, s, start)
	next := start.Add(time.Minute)
	mustCommit(t, s, l, &store.Batch{Host: store.Host{Next: next, Delay: 3 * time.Second, Robots: []store.Robots{{Scheme: "http", Status: 200, Body: []byte("x"), Fetched: start}}}})
	h, err := r.Host(ctx, "h.example")
	if err != nil || !h.Next.Equal(next) || h.Delay != 3*time.Second || len(h.Robots) != 1 || string(h.Robots[0].Body) != "x" {
		t.Errorf("after a commit: %+v, %v", h, err)
	}
}
