package eval

import (
	"math"
	"testing"
)

func result(name, model string, passed bool, tokens int64, cost *float64) Result {
	return Result{Case: name, Model: model, Passed: passed, Rounds: 2, Tokens: tokens, Cost: cost, Malformed: 1, Seconds: 1}
}

// One case passes in 2 of 4 tries, the other in none of 2.
func TestSum(t *testing.T) {
	cents := func(f float64) *float64 { return &f }
	results := []Result{
		result("a", "m", true, 10, cents(0.25)), result("a", "m", true, 10, cents(0.25)),
		result("a", "m", false, 10, cents(0.25)), result("a", "m", false, 10, cents(0.25)),
		result("b", "m", false, 10, cents(0.5)), result("b", "m", false, 10, nil),
	}
	results[5].Tokens = 0 // nothing was sent, so that it has no price
	s := Sum(results, 2)
	if s.Tries != 6 || s.Passed != 2 || s.Rounds != 2 || s.Tokens != 50 || s.Malformed != 6 || s.Refused != 0 || s.Seconds != 6 {
		t.Errorf("%+v", s)
	}
	for what, v := range map[string]struct {
		got  *float64
		want float64
	}{"pass@1": {s.Pass1, 0.25}, "pass@2": {s.PassK, 0.5}, "cost": {s.Cost, 1.5}, "cost per pass": {s.CostPerPass, 0.75}} {
		if v.got == nil || math.Abs(*v.got-v.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, v.got, v.want)
		}
	}
	if s := Sum(results, 3); *s.PassK != 1 { // only a has three tries
		t.Errorf("pass@3: %v", *s.PassK)
	}
	already := result("c", "m", false, 0, nil)
	already.Kind = Already
	if s := Sum(append(results, already), 2); s.Tries != 6 || *s.Pass1 != 0.25 {
		t.Errorf("a try that does not count: %+v", s)
	}
	results[5].Tokens = 1
	if s := Sum(results, 5); s.PassK != nil || s.Cost != nil || s.CostPerPass != nil {
		t.Errorf("too few tries, unknown price: %+v", s)
	}
	if s := Sum(nil, 1); s.Pass1 != nil || s.Cost != nil {
		t.Errorf("no tries: %+v", s)
	}
}

func TestReport(t *testing.T) {
	results := []Result{result("a", "x", true, 1, nil), result("a", "y", false, 1, nil), result("b", "x", true, 1, nil)}
	rep := NewReport(results, []string{"a", "b"}, []string{"y", "x"}, 1)
	if len(rep.Models) != 2 || rep.Models[0].Model != "y" || rep.Models[1].Passed != 2 || len(rep.Cases) != 4 {
		t.Errorf("%+v", rep)
	}
	if last := rep.Cases[3]; last.Case != "b" || last.Model != "x" || last.Passed != 1 || rep.Cases[2].Tries != 0 {
		t.Errorf("%+v", rep.Cases)
	}
}
