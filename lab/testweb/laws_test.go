package testweb

import (
	"context"
	"errors"
	"math"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/freshet/freshet/lab/testweb/behaviour"
	"github.com/freshet/freshet/lab/testweb/name"
)

// Times and rates follow the laws of their behaviours: lognormal between hosts
// with the median and spread that were asked for, latency exponential about
// half of a host's mean, drips and rates that bound a body.
func TestLatencyAndBandwidthLaws(t *testing.T) {
	t.Parallel()
	const hosts = 800
	set, err := behaviour.Parse("", []byte("latency: {median: 80ms, spread: 2.5}\nbandwidth: {median: 5000, spread: 3}"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWeb(Config{Pages: hosts, Sites: hosts, Seed: 4, Behaviours: set})
	if err != nil {
		t.Fatal(err)
	}
	var means, rates []float64
	var above, n float64
	for host := range w.Hosts() {
		least, sum := math.Inf(1), 0.
		var delays [30]float64
		for i := range delays {
			v := w.answerVisit(host, w.HostName(host), origin{scheme: "http"}, name.Document(0), "", float64(i))
			delays[i] = v.r.Delay.Seconds()
			if i == 0 {
				rates = append(rates, v.r.Rate)
			} else if v.r.Rate != rates[len(rates)-1] {
				t.Fatal("the bandwidth of a host is not its own")
			}
			w.releaseVisit(v)
			least, sum = min(least, delays[i]), sum+delays[i]
		}
		mean := sum / float64(len(delays))
		means = append(means, mean)
		for _, d := range delays {
			if n++; d-least > mean/2*math.Ln2 { // half of an exponential lies above its median
				above++
			}
		}
	}
	lognormal := func(what string, v []float64, median, spread, noise float64) {
		t.Helper()
		slices.Sort(v)
		var sum, squares float64
		for _, x := range v {
			sum += math.Log(x)
			squares += math.Log(x) * math.Log(x)
		}
		m := float64(len(v))
		sd := math.Sqrt(squares/m - sum*sum/m/m)
		if got := v[len(v)/2]; math.Abs(math.Log(got/median)) > 5*1.25*math.Log(spread)/math.Sqrt(m) || math.Abs(sd-math.Log(spread)) > 5*math.Log(spread)/math.Sqrt(2*m)+noise {
			t.Errorf("%s: median %g, want %g; spread %g, want %g", what, got, median, math.Exp(sd), spread)
		}
	}
	lognormal("latency", means, .08, 2.5, .01) // means of 30 requests have a noise of their own
	lognormal("bandwidth", rates, 5000, 3, 0)
	if share := above / n; math.Abs(share-.5) > .03 {
		t.Errorf("%.3f of the requests take longer than the median of the law", share)
	}
}

// A dripping page comes at its rate.
func TestDrip(t *testing.T) {
	t.Parallel()
	s, c := misbehave(t, "drip: {pages: 1, rate: 4000}")
	began := time.Now()
	_, body := get(t, c, s.URL(1))
	if d, want := time.Since(began).Seconds(), float64(len(body))/4000; d < want-.1 {
		t.Errorf("%d bytes after %.2f s, want %.2f", len(body), d, want)
	}
}

// What the web's own DNS answers where names are spoiled, seen by the standard
// resolver.
func TestSpoiltNames(t *testing.T) {
	t.Parallel()
	for fault, check := range map[string]func(addrs []string, err *net.DNSError, took time.Duration) bool{
		"nxdomain": func(_ []string, err *net.DNSError, _ time.Duration) bool { return err != nil && err.IsNotFound },
		"servfail": func(_ []string, err *net.DNSError, _ time.Duration) bool { return err != nil && err.IsTemporary },
		"drop":     func(_ []string, err *net.DNSError, _ time.Duration) bool { return err != nil && err.IsTimeout },
		"slow": func(a []string, err *net.DNSError, took time.Duration) bool {
			return err == nil && len(a) == 1 && took > 300*time.Millisecond
		},
		"cname": func(a []string, err *net.DNSError, _ time.Duration) bool { return err == nil && len(a) == 1 },
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s, _ := misbehave(t, "dns: {hosts: 1, delay: 350ms, faults: ["+fault+"]}", func(c *Config) { c.DNS = "127.0.0.1:0" })
			r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, network, s.DNSAddr())
			}}
			patience := time.Minute
			if fault == "drop" { // nothing else ends it
				patience = 2 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			began := time.Now()
			ips, err := r.LookupNetIP(ctx, "ip4", s.HostName(1)+".")
			var addrs []string
			for _, ip := range ips {
				addrs = append(addrs, ip.String())
			}
			var wrong *net.DNSError
			if err != nil && !errors.As(err, &wrong) {
				t.Fatal(err)
			}
			if !check(addrs, wrong, time.Since(began)) {
				t.Errorf("%v, %v", addrs, err)
			}
		})
	}
}
