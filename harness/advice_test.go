package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone"
	"hone/loop"
)

// The role of a program's own loop has the repository's advice too.
func TestAdviceOfARole(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "CLAUDE.md"), []byte("\ufeffUse tabs.\r\n\r\n# Done\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := runEmptyLoop(t, dir, func(*hone.Run) {})
	defer s.Close()
	role := s.Role("fixer", "Fix it.\n")
	if !strings.HasPrefix(role.System, "Fix it.\n\n# Advice of this repository\n") || !strings.HasSuffix(role.System, "\n\n> Use tabs.\n>\n> # Done\n") {
		t.Errorf("the system text is %q", role.System)
	}
	if a := s.Settings().RepoAdvice; a.File != "CLAUDE.md" || a.Size != 24 || a.Cut {
		t.Errorf("%+v", a)
	}
}

func TestNoAdvice(t *testing.T) {
	s := runEmptyLoop(t, t.TempDir(), func(*hone.Run) {})
	defer s.Close()
	if role := s.Role("fixer", "Fix it.\n"); role.System != "Fix it.\n" || s.Settings().RepoAdvice != (loop.Advice{}) {
		t.Errorf("%q, %+v", role.System, s.Settings().RepoAdvice)
	}
}

func TestBeginning(t *testing.T) {
	for _, c := range []struct {
		text, want string
		cut        bool
	}{
		{"", "", false},
		{"a\nbcd\n", "a\nbcd\n", false},
		{"a\nbcd\ne", "a\nbcd\n", true},
		{"a\nbcdefg\n", "a\n", true},
		{"abcdef\n", "abcdef", true},
		{"abcde€\n", "abcde", true},
		{"€€€", "€€", true},
	} {
		if got, cut := beginning(c.text, 6); got != c.want || cut != c.cut {
			t.Errorf("beginning(%q) = %q, %v; want %q, %v", c.text, got, cut, c.want, c.cut)
		}
	}
}
