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
	for _, tt := range []struct {
		thresholds, modes []int
		want              string
	}{
		{[]int{1}, []int{1}, "throttle.modes: 1 values for 1 thresholds, want 2"},
		{[]int{3, 1}, []int{1, 2, 3}, "throttle.thresholds[1]: 1 is below the value before it, 3"},
		{[]int{1}, []int{3, 1}, "throttle.modes[1]: 1 is below the value before it, 3"},
		{[]int{-2}, []int{1, 2}, "throttle.thresholds[0]: -2 is below -1"},
		{[]int{1}, []int{-1, 2}, "throttle.modes[0]: -1 agents is not in 0 to 100000"},
		{[]int{1}, []int{1, 1 << 40}, "throttle.modes[1]: 1099511627776 agents is not in 0 to 100000"},
		{[]int{1}, nil, "throttle.modes: 0 values for 1 thresholds, want 2"},
		{[]int{1}, []int{}, "throttle.modes: 0 values for 1 thresholds, want 2"},
		{nil, []int{1, 2}, "throttle.modes: 2 values for 0 thresholds, want 1"},
		{make([]int, 1001), make([]int, 1002), "throttle.thresholds: 1001 values, at most 1000 are allowed"},
	} {
		if err := c.Set(tt.thresholds, tt.modes); err == nil || err.Error() != tt.want {
			t.Errorf("Set(%.3v..., %.3v...) = %v, want %s", tt.thresholds, tt.modes, err, tt.want)
		}
	}
	for _, none := range [][]int{nil, {}} { // of JSON and YAML: null and []
		if err := c.Set(none, []int{4}); err != nil {
			t.Errorf("Set(%#v, [4]) = %v", none, err)
		}
		if n, limit := c.Active(7); n != 4 || !limit {
			t.Errorf("one mode: %d %v, want 4 true", n, limit)
		}
		if err := c.Set(none, none); err != nil {
			t.Errorf("Set(%#v, %#v) = %v", none, none, err)
		}
		if _, limit := c.Active(7); limit {
			t.Error("the control did not end")
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
