package process

import (
	"strings"
	"testing"
)

func TestMarkEnv(t *testing.T) {
	got := strings.Join(mark{text: "inner"}.env([]string{"A=1", marker + "=outer"}), " ")
	if want := "A=1 " + marker + "=outer,inner"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestParseStatus(t *testing.T) {
	text := "42 (a) b (c) Z 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0"
	want := Status{process: process{42, 12345}, Parent: 7, Group: 8, Session: 9, Threads: 1, Zombie: true}
	if got, ok := parseStatus(42, text); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, short := range []string{"", "42 (a) S 1", ")"} {
		if _, ok := parseStatus(42, short); ok {
			t.Errorf("parseStatus(%q) was read", short)
		}
	}
}
