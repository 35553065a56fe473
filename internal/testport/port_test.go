package testport

import (
	"fmt"
	"net"
	"testing"
)

// What is given can be listened at, is not given while somebody does, and lies
// below what the kernel gives out.
func TestFree(t *testing.T) {
	t.Parallel()
	held := map[int]bool{}
	for range 50 {
		n, err := Free()
		if err != nil {
			t.Fatal(err)
		}
		if held[n] || n < first || n >= last {
			t.Fatalf("port %d; held are %v", n, held)
		}
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", n))
		if err != nil {
			t.Logf("taken by another in between: %v", err)
			continue
		}
		defer l.Close()
		held[n] = true
	}
	if len(held) < 40 {
		t.Errorf("of 50 ports only %d could be listened at", len(held))
	}
}
