package throttle

import (
	"fmt"
	"testing"
)

// i <= j1 -> mode R; j_{m-1} < i <= j_m -> mode R-m+1; i > j_{R-1} -> mode 1.
func TestActive(t *testing.T) {
	t.Parallel()
	tests := []struct {
		thresholds, modes []int
		want              string // agents at queue lengths 0..6
	}{
		{[]int{1, 4}, []int{1, 2, 3}, "3 3 2 2 2 1 1"},
		{[]int{-1}, []int{1, 5}, "1 1 1 1 1 1 1"},
		{[]int{2, 2}, []int{0, 2, 4}, "4 4 4 0 0 0 0"},
		{nil, []int{7}, "7 7 7 7 7 7 7"},
		{[]int{0}, []int{0, 1}, "1 0 0 0 0 0 0"},
	}
	for _, tt := range tests {
		c, err := New(tt.thresholds, tt.modes)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for q := range 7 {
			n, limit := c.Active(q)
			if !limit {
				t.Errorf("%v %v: no limit", tt.thresholds, tt.modes)
			}
			got += fmt.Sprint(n) + " "
		}
		if got != tt.want+" " {
			t.Errorf("%v %v: %s", tt.thresholds, tt.modes, got)
		}
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	var c Controller
	if _, limit := c.Active(3); limit {
		t.Error("the zero value limits")
	}
	for _, bad := range [][2][]int{{{1}, {1}}, {{3, 1}, {1, 2, 3}}, {{1}, {3, 1}}, {{-2}, {1, 2}}, {{1}, {-1, 2}}, {{1}, nil}} {
		if err := c.Set(bad[0], bad[1]); err == nil {
			t.Errorf("took %v", bad)
		}
	}
	if err := c.Set([]int{1}, []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, limit := c.Active(3); limit {
		t.Error("the control did not end")
	}
}
