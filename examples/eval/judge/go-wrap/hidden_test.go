package wrap

import (
	"slices"
	"testing"
)

func TestHidden(t *testing.T) {
	got := Text("a unbreakable b c", 5)
	if want := []string{"a", "unbreakable", "b c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Text("", 5); len(got) != 0 {
		t.Errorf("got %q for no words", got)
	}
}
