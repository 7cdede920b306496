package loop

import (
	"testing"

	"hone/check"
)

func TestFalseClaim(t *testing.T) {
	exit2 := []check.Finding{{Source: check.SourceCommand, Text: "The check command failed: exit status 2.\n\n    make\n"}}
	two := []check.Finding{{Source: check.SourceCommand, ID: "a", Text: "x"}, {Source: check.SourceCommand, ID: "b", Text: "y"}, {Source: "outside", Advisory: true}}
	for _, c := range []struct {
		said  string
		found []check.Finding
		want  string
	}{
		{"Fixed the sum. The check now passes.", exit2, `You wrote "The check now passes". hone ran the check after that: it exits with status 2.` + "\n"},
		{"I ran it:\n\nmake\nexit status 0\n", two, `You wrote "exit status 0". hone ran the check after that: it reports 2 findings.` + "\n"},
		{"All 14 tests pass", two, `You wrote "All 14 tests pass". hone ran the check after that: it reports 2 findings.` + "\n"},
		{"Your last session changed a.go, and said: `make` exits with code 0.", exit2, "You wrote \"`make` exits with code 0\". hone ran the check after that: it exits with status 2.\n"},
		{"The tests should pass now.", two, ""},
		{"The check does not pass yet.", two, ""},
		{"12 of 14 tests pass.", two, ""},
		{"The tests of the root package pass. The others cannot read their files.", two, ""},
		{"Both new tests pass, and test_sum passes.", two, ""},
		{"I made the tests fail less; exit status 1.", two, ""},
		{"exit status 01, exit code 10", two, ""},
		{"The check passes.", nil, ""},
		{"The check passes.", []check.Finding{{Source: "proof", Text: "The check passes only with the changes to a_test.go."}}, ""},
		{"The check passes.", []check.Finding{{Source: "pending", Text: "write docs"}}, ""},
		{"", two, ""},
	} {
		if got := FalseClaim(c.said, c.found); got != c.want {
			t.Errorf("%q: got %s", c.said, got)
		}
	}
}
