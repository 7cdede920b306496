package reader_test

import (
	"os"
	"strings"
	"testing"
)

// Of the source that pytest prints before a line that it marks, a model gets the head of the
// function and the last lines.
func TestPytestSource(t *testing.T) {
	out, err := os.ReadFile("testdata/pytest/long-source.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := named(t, "pytest")(string(out), 1)
	if len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	text := found[0].Text
	for _, want := range []string{"def test_numbers():\n    ...\n", "seen.append(36)", ">       check(seen, 41)", "def check(seen, want):", "E       assert 40 == 41"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	if strings.Contains(text, "seen.append(35)") {
		t.Errorf("too much of the source:\n%s", text)
	}
}
