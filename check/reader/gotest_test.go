package reader

import "testing"

// TestGoMessages: each message of a test is in its finding once, the last one first. Only if
// that follows others and has more lines does it also stand in front of these.
func TestGoMessages(t *testing.T) {
	for name, c := range map[string]struct {
		out  []string
		want string
	}{
		"one":   {[]string{"    a_test.go:4: wrong"}, "TestX: wrong"},
		"three": {[]string{"    a_test.go:4: first", "    a_test.go:5: second", "    a_test.go:6: third"}, "TestX: third\na_test.go:4: first\na_test.go:5: second"},
		"lines": {[]string{"    a_test.go:4: diff:", "        - b", "        + c"}, "TestX: diff:\n- b\n+ c"},
		"lines after another": {[]string{"    a_test.go:4: first", "    a_test.go:5: diff:", "        - b"},
			"TestX: diff:\na_test.go:4: first\na_test.go:5: diff:\n    - b"},
		"nothing": {nil, "TestX failed"},
	} {
		if got := (&goTest{name: "TestX", out: c.out}).item("p"); got.text != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got.text, c.want)
		}
	}
}
