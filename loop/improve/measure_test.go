package improve

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/history"
)

func TestVerdict(t *testing.T) {
	few := []float64{100, 100}
	for _, c := range []struct {
		what     string
		lower    bool
		was, now []float64
		kept     bool
	}{
		{"a clear gain", true, spread(100, 10), spread(80, 10), true},
		{"a clear gain of what should be higher", false, spread(80, 10), spread(100, 10), true},
		{"a loss", true, spread(80, 10), spread(100, 10), false},
		{"the same", true, spread(80, 10), spread(80, 10), false},
		{"a gain within the noise", true, spread(100, 10), spread(98, 10), false},
		{"below the smallest gain", true, []float64{1000, 1000}, []float64{999, 999}, false},
		{"equal samples", true, few, []float64{98, 98}, true},
		{"equal samples that are worse", true, few, []float64{101, 101}, false},
		{"few samples that vary", true, few, []float64{90, 98}, false},
		{"to zero", true, few, []float64{0, 0}, true},
		{"from zero", false, []float64{0, 0}, []float64{1, 1}, true},
		{"negative", true, []float64{-1, -1}, []float64{-2, -2}, true},
	} {
		s := history.Score{Name: "n", Lower: c.lower}
		why, p := meter{gain: 0.01}.verdict(s, c.was, c.now, allAlpha/20)
		if (why == "") != c.kept || p < 0 || p > 1 {
			t.Errorf("%s: %q, p = %v", c.what, why, p)
		}
	}
}

// spread returns ten samples around a number.
func spread(middle, width float64) (all []float64) {
	for i := range manySamples {
		all = append(all, middle+width*(float64(i)/9-0.5))
	}
	return all
}

// TestNoiseIsNoGain: of a metric that is nothing but noise of ±10 %, the best of a thousand runs
// of 20 rounds is kept in at most five of a hundred; the confirming measurement makes that far fewer.
func TestNoiseIsNoGain(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		random := rand.New(rand.NewPCG(seed, 0))
		draw := func() (all []float64) {
			for range manySamples {
				all = append(all, 100*(0.9+0.2*random.Float64()))
			}
			return all
		}
		once, twice := 0, 0
		for range 20 * 1000 {
			s, m := history.Score{Lower: true}, meter{gain: 0.01}
			if why, _ := m.verdict(s, draw(), draw(), allAlpha/20); why != "" {
				continue
			}
			once++
			if why, _ := m.verdict(s, draw(), draw(), allAlpha/20); why == "" {
				twice++
			}
		}
		if once > 60 || twice > 1 { // 50 are expected of the first, and 0.1 of both
			t.Errorf("seed %d: %d gains once, %d twice in 20 000 rounds", seed, once, twice)
		}
	}
}

func TestSummary(t *testing.T) {
	if middle, noise := summary(spread(100, 10)); middle != 100 || noise < 0.01 || noise > 0.05 {
		t.Errorf("%v ± %v", middle, noise)
	}
	if middle, noise := summary([]float64{9, 10, 11, 10, 10}); middle != 10 || noise != 0.1 {
		t.Errorf("%v ± %v", middle, noise)
	}
	if middle, noise := summary([]float64{0, 0}); middle != 0 || noise != 0 {
		t.Errorf("%v ± %v", middle, noise)
	}
	if p := leastP(5); math.Abs(p-1.0/252) > 1e-9 {
		t.Errorf("the smallest p of five samples is %v", p)
	}
}

// TestReadMetric reads recorded outputs.
func TestReadMetric(t *testing.T) {
	for _, c := range []struct {
		name, out string
		want      values
	}{
		{"lines", "building\nMETRIC p95_ms=812.5\n  METRIC rss = 20\r\nMETRIC broken=x\nMETRIC nan=NaN\nMETRIC inf=-Inf\nMETRIC big=1e200\nMETRIC odd=1_0\nMETRIC hex=0x10\nnoise METRIC a=1\n", values{"p95_ms": {812.5}, "rss": {20}}},
		{"alone", "\n 4832\n", values{"value": {4832}}},
		{"alone with an exponent", "1.5e3", values{"value": {1500}}},
		{"two numbers", "1\n2\n", values{}},
		{"nothing", "", values{}},
		{"go", `goos: linux
goarch: amd64
pkg: example.com/fib
cpu: AMD EPYC 7B13
BenchmarkFib-2         	  298118	      3972 ns/op	      16 B/op	       1 allocs/op
BenchmarkFib-2         	  301534	      3980 ns/op	      16 B/op	       1 allocs/op
BenchmarkSum/n=10-2    	     100	     10.50 ns/op	 12.00 MB/s
PASS
ok  	example.com/fib	2.452s
`, values{"Fib/ns/op": {3972, 3980}, "Fib/B/op": {16, 16}, "Fib/allocs/op": {1, 1}, "Sum/n=10/ns/op": {10.5}, "Sum/n=10/MB/s": {12}}},
		{"hyperfine", `{
  "results": [
    {
      "command": "sleep 0.1",
      "mean": 0.10270730464,
      "stddev": 0.00038,
      "median": 0.10268,
      "user": 0.00047,
      "system": 0.0012,
      "min": 0.1021,
      "max": 0.1034,
      "times": [0.1021, 0.1034],
      "exit_codes": [0, 0]
    }
  ]
}
`, values{"mean": {0.10270730464}, "stddev": {0.00038}, "median": {0.10268}, "user": {0.00047}, "system": {0.0012}, "min": {0.1021}, "max": {0.1034}}},
		{"hyperfine with two commands", `{"results": [{"command": "a", "mean": 1}, {"command": "b", "mean": 2}]}`, values{"a/mean": {1}, "b/mean": {2}}},
		{"pytest-benchmark", `{"machine_info": {"node": "x"}, "benchmarks": [{"group": null, "name": "test_fib", "fullname": "test_fib.py::test_fib",
"params": null, "stats": {"min": 1.2e-05, "max": 0.0001, "mean": 1.5e-05, "rounds": 4000, "median": 1.4e-05, "outliers": "10;200", "ops": 66000.5}}], "version": "4.0.0"}`,
			values{"min": {1.2e-05}, "max": {0.0001}, "mean": {1.5e-05}, "rounds": {4000}, "median": {1.4e-05}, "ops": {66000.5}}},
		{"criterion", `{"mean":{"confidence_interval":{"confidence_level":0.95,"lower_bound":10.1,"upper_bound":10.4},"point_estimate":10.25,"standard_error":0.07},
"median":{"confidence_interval":{"confidence_level":0.95,"lower_bound":10.0,"upper_bound":10.3},"point_estimate":10.2,"standard_error":0.05},"slope":null}`,
			values{"mean": {10.25}, "median": {10.2}}},
		{"other JSON", `{"a": 1, "results": "none"}`, values{}},
		{"JSON after text", "done\n{\"results\": [{\"mean\": 3}]}", values{"mean": {3}}},
	} {
		if diff := cmp.Diff(c.want, readMetric([]byte(c.out))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestNumbersOf(t *testing.T) {
	v := values{"Fib/ns/op": {1}, "Sum/ns/op": {2}, "Sum/B/op": {3}}
	for name, want := range map[string]string{"Fib/ns/op": "", "B/op": "", "ns/op": "the metric printed no number ns/op, but Fib/ns/op, Sum/B/op, Sum/ns/op", "x": "no number x"} {
		_, err := v.numbersOf(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (values{}).numbersOf("x"); err == nil || !strings.Contains(err.Error(), "no number that hone can read") {
		t.Error(err)
	}
}
