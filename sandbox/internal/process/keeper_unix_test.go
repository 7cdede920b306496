//go:build unix && !linux

package process

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestAwaitDeath(t *testing.T) {
	for _, c := range []struct {
		lines  string
		groups []int
		died   bool
	}{
		{"", nil, true},
		{"closed\n", nil, false},
		{"+12\n+34\n-12\n+56\n", []int{34, 56}, true},
		{"+12\n-12\nclosed\n", nil, false},
	} {
		groups, died := awaitDeath(strings.NewReader(c.lines))
		if got := slices.Sorted(maps.Keys(groups)); !slices.Equal(got, c.groups) || died != c.died {
			t.Errorf("%q: %v, %v", c.lines, got, died)
		}
	}
}
