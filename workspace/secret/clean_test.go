package secret

import (
	"slices"
	"testing"
	"time"
)

// A guard takes over what another one remembers only if that one judged alike and
// its list is whole.
func TestCleanList(t *testing.T) {
	now := time.Now()
	file := func(n int) FileState {
		return FileState{Path: "a", Inode: uint64(n), Changed: now.Add(-time.Hour).UnixNano()}
	}
	newGuard := func(known string, send ...string) *Guard {
		g := NewGuard(send)
		g.Known = []string{known}
		return g
	}
	key := []byte("key")
	g := newGuard("known-value", "a/**")
	g.MarkClean(file(0), now)
	if list := g.CleanList(key); list != nil {
		t.Errorf("one file is stored in %d bytes", len(list))
	}
	for i := range 100 {
		g.MarkClean(file(i), now)
	}
	list := g.CleanList(key)
	damaged := slices.Clone(list)
	damaged[len(damaged)-1]++
	for name, tt := range map[string]struct {
		guard *Guard
		key   string
		list  []byte
		want  bool
	}{
		"same":        {newGuard("known-value", "a/**"), "key", list, true},
		"derived":     {newGuard("known-value", "a/**").WithSecrets([]string{"some-password"}), "key", list, true},
		"other key":   {newGuard("known-value", "a/**"), "other", list, false},
		"other value": {newGuard("other-value", "a/**"), "key", list, false},
		"other send":  {newGuard("known-value", "a/*"), "key", list, false},
		"damaged":     {newGuard("known-value", "a/**"), "key", damaged, false},
		"cut":         {newGuard("known-value", "a/**"), "key", list[:len(list)-16], false},
		"empty":       {newGuard("known-value", "a/**"), "key", nil, false},
	} {
		tt.guard.AddClean([]byte(tt.key), tt.list)
		if got := tt.guard.IsClean(file(7)); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
		if tt.guard.IsClean(file(100)) {
			t.Errorf("%s: another state is clean", name)
		}
	}
}

// The list omits files that no longer exist, or have another state.
func TestCleanListForgets(t *testing.T) {
	now := time.Now()
	key, old := []byte("key"), now.Add(-time.Hour).UnixNano()
	first, second := NewGuard(nil), NewGuard(nil)
	for i := range 100 {
		first.MarkClean(FileState{Inode: uint64(i), Changed: old}, now)
	}
	list := first.CleanList(key)
	second.AddClean(key, list)
	for i := range 100 {
		second.IsClean(FileState{Inode: uint64(i), Changed: old})
	}
	if got := second.CleanList(key); got != nil {
		t.Errorf("the same list is stored again")
	}
	third := NewGuard(nil)
	third.AddClean(key, list)
	for i := range 10 {
		third.IsClean(FileState{Inode: uint64(i), Changed: old})
	}
	if got := third.CleanList(key); len(got) != 32+10*16 {
		t.Errorf("the list of 10 files has %d bytes", len(got))
	}
}
