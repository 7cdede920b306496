package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// numbered returns n findings of a source.
func numbered(source string, n int, text string) []Finding {
	var list []Finding
	for i := range n {
		list = append(list, Finding{Source: source, Text: fmt.Sprint(i, text)})
	}
	return list
}

func TestBoundKeepsWhatFits(t *testing.T) {
	list := append([]Finding{{Source: "a", Text: "note", Advisory: true}}, numbered("a", MaxFindings-1, "")...)
	if diff := cmp.Diff(list, Bound(list)); diff != "" {
		t.Error(diff)
	}
	if got := Bound(nil); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestBoundCountsTheRest(t *testing.T) {
	list := append([]Finding{{Source: "a", Text: "note", Advisory: true}}, numbered("a", 300, "")...)
	list = append(list, Finding{Source: "b", Text: "last"}, Finding{Source: "a", Text: "stuck", Broken: true})
	got := Bound(list)
	if len(got) != MaxFindings+3 || Count(got) != len(list) {
		t.Fatalf("%d findings stand for %d of %d", len(got), Count(got), len(list))
	}
	if got[0].Text != "0" || got[MaxFindings-1].Text != "stuck" {
		t.Errorf("the first is %q, the last %q", got[0].Text, got[MaxFindings-1].Text)
	}
	rest := got[MaxFindings:]
	for i := range rest {
		rest[i].Digest = ""
	}
	want := []Finding{
		{Source: "a", Text: "… and 1 more finding", More: 1, Advisory: true},
		{Source: "a", Text: "… and 101 more findings", More: 101},
		{Source: "b", Text: "… and 1 more finding", More: 1},
	}
	if diff := cmp.Diff(want, rest); diff != "" {
		t.Error(diff)
	}
}

func TestBoundCutsLongTexts(t *testing.T) {
	for name, list := range map[string][]Finding{
		"one of 10 MB": {{Source: "a", Text: strings.Repeat("x", 10<<20)}},
		"two":          {{Source: "a", Text: strings.Repeat("x", 40<<10)}, {Source: "a", Text: strings.Repeat("y", 40<<10)}},
		"many":         numbered("a", 1000, strings.Repeat("y", 999)),
		"a long name":  {{Source: "a", File: strings.Repeat("x", 10<<20), Text: "x"}},
	} {
		got, size := Bound(list), 0
		for _, f := range got {
			size += len(f.Text) + len(f.File)
		}
		if size > maxBytes+100 || Count(got) != len(list) || got[0].Text[0] != list[0].Text[0] {
			t.Errorf("%s: %d bytes, %d findings", name, size, Count(got))
		}
		if diff := cmp.Diff(got, Bound(got)); diff != "" {
			t.Errorf("%s: bounded again: %s", name, diff)
		}
	}
	build := []Finding{{Source: SourceBuild, Text: strings.Repeat("x", 10*maxBytes)}, {Source: "a", Text: strings.Repeat("x", MaxText)}}
	if diff := cmp.Diff(build, Bound(build)); diff != "" {
		t.Error("a build, which has its own limit, and a check")
	}
}

func TestBoundAgain(t *testing.T) {
	list := slices.Concat(numbered("a", 300, ""), numbered("b", 300, ""))
	joined := Bound(slices.Concat(Bound(numbered("a", 300, "")), Bound(numbered("b", 300, ""))))
	if diff := cmp.Diff(Bound(list), joined); diff != "" {
		t.Error(diff)
	}
}

// Keys are the same for the same findings, whichever of them are listed.
func TestKeysOfBounded(t *testing.T) {
	list := append(numbered("a", 300, ""), Finding{Source: "b", Text: "other"})
	backwards := slices.Clone(list)
	slices.Reverse(backwards)
	if diff := cmp.Diff(Keys(Bound(list)), Keys(Bound(backwards))); diff != "" {
		t.Error(diff)
	}
	changed := slices.Clone(list)
	changed[299].Text = "another"
	for name, other := range map[string][]Finding{"one more": append(numbered("a", 301, ""), list[300]), "one that is not listed differs": changed} {
		if cmp.Equal(Keys(Bound(list)), Keys(Bound(other))) {
			t.Errorf("%s: %q", name, Keys(Bound(other)))
		}
	}
}
