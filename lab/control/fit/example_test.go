package fit_test

import (
	"fmt"

	"github.com/freshet/freshet/lab/control/fit"
)

func ExampleMoments() {
	l, err := fit.Moments(8.2, 5700, 1.19e7)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Method)
	fmt.Printf("%.4g\n", l.Moments(3))
	// Output:
	// hyperexponential-2, three moments
	// [8.2 5700 1.19e+07]
}

func ExampleMAP2() {
	_, err := fit.MAP2(212.03, 96309.1, 0, .622)
	fmt.Println(err)
	// Output:
	// with SCV 1.142 two phases reach correlations below (1 - 1/SCV)/2 = 0.062; the log has 0.622 at lag 1: regimes of less than exponential variability are needed
}

func ExampleFitSummary() {
	a, err := fit.FitSummary(fit.Summary{
		Moments: []float64{212.03, 96309.1009},
		Lags:    []float64{.622, .574, .555, .537, .523, .507},
	}, 30)
	if err != nil {
		fmt.Println(err)
		return
	}
	lags, err := a.Lags(6)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.Method)
	fmt.Printf("%.3f\n", lags)
	// Output:
	// 4 regimes of Erlang-5, moments and correlations
	// [0.619 0.579 0.554 0.536 0.521 0.509]
}
