package wrap

import (
	"slices"
	"testing"
)

func TestText(t *testing.T) {
	got := Text("the quick brown fox", 10)
	if want := []string{"the quick", "brown fox"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
