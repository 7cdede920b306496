//go:build unix

package wall

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/sandbox"
)

func TestMounts(t *testing.T) {
	dir := func(path string, a sandbox.Access) sandbox.Entry {
		return sandbox.Entry{Path: path, Access: a, Dir: true}
	}
	file := func(path string, a sandbox.Access) sandbox.Entry { return sandbox.Entry{Path: path, Access: a} }
	rw := func(path string) sandbox.Entry { return dir(path, sandbox.AccessWrite) }
	ro := func(path string) sandbox.Entry { return dir(path, sandbox.AccessRead) }
	none := []sandbox.Entry{}
	for name, c := range map[string]struct {
		entries []sandbox.Entry
		want    []sandbox.Entry
	}{
		"nothing":           {nil, none},
		"folders":           {[]sandbox.Entry{dir("/usr", sandbox.AccessRead), dir("/w", sandbox.AccessWrite)}, []sandbox.Entry{ro("/usr"), rw("/w")}},
		"a file":            {[]sandbox.Entry{file("/etc/hosts", sandbox.AccessRead)}, []sandbox.Entry{file("/etc/hosts", sandbox.AccessRead)}},
		"the whole machine": {[]sandbox.Entry{dir("/", sandbox.AccessRead), dir("/w", sandbox.AccessWrite)}, []sandbox.Entry{ro("/"), rw("/w")}},
		"the root, written": {[]sandbox.Entry{dir("/", sandbox.AccessWrite), dir("/w/a", sandbox.AccessRead)}, []sandbox.Entry{rw("/"), rw("/w"), ro("/w/a")}},
		"the same below":    {[]sandbox.Entry{dir("/usr", sandbox.AccessRead), dir("/usr/lib", sandbox.AccessRead), dir("/w", sandbox.AccessWrite), dir("/w/a/b", sandbox.AccessWrite)}, []sandbox.Entry{ro("/usr"), rw("/w")}},
		"a name that begins alike": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), dir("/w-other", sandbox.AccessWrite), file("/w-other/x", sandbox.AccessRead)},
			[]sandbox.Entry{rw("/w"), rw("/w-other"), file("/w-other/x", sandbox.AccessRead)},
		},
		"a protected file at the top": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), file("/w/abl.config.sh", sandbox.AccessRead)},
			[]sandbox.Entry{rw("/w"), file("/w/abl.config.sh", sandbox.AccessRead)},
		},
		"protected files, whose folders are held in place": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), file("/w/.git/config", sandbox.AccessRead), dir("/w/.git/hooks", sandbox.AccessRead), file("/w/a/b/.git/config", sandbox.AccessRead)},
			[]sandbox.Entry{
				rw("/w"), rw("/w/.git"), file("/w/.git/config", sandbox.AccessRead), ro("/w/.git/hooks"),
				rw("/w/a"), rw("/w/a/b"), rw("/w/a/b/.git"), file("/w/a/b/.git/config", sandbox.AccessRead),
			},
		},
		"an entry that is also held in place": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), dir("/w/a", sandbox.AccessWrite), file("/w/a/x", sandbox.AccessRead)},
			[]sandbox.Entry{rw("/w"), rw("/w/a"), file("/w/a/x", sandbox.AccessRead)},
		},
		"writable in read-only in writable": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), dir("/w/a/b", sandbox.AccessRead), dir("/w/a/b/c/d", sandbox.AccessWrite), file("/w/a/b/c/d/e/f", sandbox.AccessRead)},
			[]sandbox.Entry{
				rw("/w"), rw("/w/a"), ro("/w/a/b"), rw("/w/a/b/c/d"), rw("/w/a/b/c/d/e"),
				file("/w/a/b/c/d/e/f", sandbox.AccessRead),
			},
		},
		"an overlay, whose folder is held in place": {
			[]sandbox.Entry{dir("/h", sandbox.AccessWrite), {Path: "/h/.npm/_cacache", Access: sandbox.AccessWrite, Dir: true, Lower: "/u/_cacache"}},
			[]sandbox.Entry{rw("/h"), rw("/h/.npm"), {Path: "/h/.npm/_cacache", Access: sandbox.AccessWrite, Dir: true, Lower: "/u/_cacache"}},
		},
		"an overlay at its own path, with a hidden file": {
			[]sandbox.Entry{dir("/u", sandbox.AccessRead), {Path: "/u/mod", Access: sandbox.AccessWrite, Dir: true, Lower: "/u/mod"}, file("/u/mod/key", sandbox.AccessNone)},
			[]sandbox.Entry{ro("/u"), {Path: "/u/mod", Access: sandbox.AccessWrite, Dir: true, Lower: "/u/mod"}, file("/u/mod/key", sandbox.AccessNone)},
		},
		"hidden, whose folders are held in place": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), file("/w/a/c/.env", sandbox.AccessNone), dir("/w/b/keys", sandbox.AccessNone)},
			[]sandbox.Entry{rw("/w"), rw("/w/a"), rw("/w/a/c"), file("/w/a/c/.env", sandbox.AccessNone), rw("/w/b"), dir("/w/b/keys", sandbox.AccessNone)},
		},
		"hidden in an overlay, where the kernel renames no folder": {
			[]sandbox.Entry{dir("/u", sandbox.AccessWrite), {Path: "/u/mod", Access: sandbox.AccessWrite, Dir: true, Lower: "/u/mod"}, file("/u/mod/a/key", sandbox.AccessNone)},
			[]sandbox.Entry{rw("/u"), {Path: "/u/mod", Access: sandbox.AccessWrite, Dir: true, Lower: "/u/mod"}, file("/u/mod/a/key", sandbox.AccessNone)},
		},
		"hidden, where nothing is":   {[]sandbox.Entry{dir("/home/u/.ssh", sandbox.AccessNone), dir("/usr", sandbox.AccessRead)}, []sandbox.Entry{ro("/usr")}},
		"hidden, in what is hidden":  {[]sandbox.Entry{dir("/usr", sandbox.AccessRead), dir("/usr/a", sandbox.AccessNone), dir("/usr/a/b", sandbox.AccessNone)}, []sandbox.Entry{ro("/usr"), dir("/usr/a", sandbox.AccessNone)}},
		"absent":                     {[]sandbox.Entry{dir("/w", sandbox.AccessWrite), {Path: "/w/.hone", Access: sandbox.AccessRead, Absent: true}, {Path: "/opt", Access: sandbox.AccessRead, Absent: true}}, []sandbox.Entry{rw("/w")}},
		"in an absent one":           {[]sandbox.Entry{{Path: "/w", Access: sandbox.AccessWrite, Absent: true}, file("/w/x", sandbox.AccessNone)}, none},
		"a link where nothing is":    {[]sandbox.Entry{{Path: "/bin", Access: sandbox.AccessRead, Link: "/usr/bin"}, dir("/usr", sandbox.AccessRead)}, []sandbox.Entry{{Path: "/bin", Access: sandbox.AccessRead, Link: "/usr/bin"}, ro("/usr")}},
		"a link that is seen anyway": {[]sandbox.Entry{dir("/usr", sandbox.AccessRead), {Path: "/usr/tmp", Access: sandbox.AccessRead, Link: "/var"}, {Path: "/w/l", Access: sandbox.AccessRead, Link: "/w/x"}, dir("/w", sandbox.AccessWrite)}, []sandbox.Entry{ro("/usr"), rw("/w")}},
		"read in hidden in written, held in place all the way": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), dir("/w/a/h", sandbox.AccessNone), {Path: "/w/a/h/l", Access: sandbox.AccessRead, Link: "/w/a/h/r"}, dir("/w/a/h/r", sandbox.AccessRead)},
			[]sandbox.Entry{rw("/w"), rw("/w/a"), dir("/w/a/h", sandbox.AccessNone), {Path: "/w/a/h/l", Access: sandbox.AccessRead, Link: "/w/a/h/r"}, ro("/w/a/h/r")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, mounts(c.entries)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzMounts checks the mounts that mounts leaves out: at every path the last mount
// around it gives the access of the innermost entry.
func FuzzMounts(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 1, 1, 2, 0, 0, 1, 2, 0})
	f.Add([]byte{2, 1, 0, 0, 1, 1, 2, 0, 0, 1, 2, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, all := fuzzedEntries(data)
		list := mounts(entries)
		for _, path := range all {
			if got, want := mountedAccess(list, path), entryAccess(entries, path); got != want {
				t.Errorf("%s: mounted as %d, and wanted as %d\n%+v\n%+v", path, got, want, entries, list)
			}
			if movable := mountedAccess(list, path) == sandbox.AccessWrite && !mountedAt(list, path); movable && holdsProtected(entries, path) {
				t.Errorf("%s holds what is protected, and could be renamed\n%+v\n%+v", path, entries, list)
			}
		}
	})
}

// fuzzedEntries returns directories of up to three names, each a or b, and all paths
// to check.
func fuzzedEntries(data []byte) (entries []sandbox.Entry, all []string) {
	names, seen := []string{"", "/a", "/b"}, map[string]bool{}
	for _, x := range names[1:] {
		for _, y := range names {
			for _, z := range names {
				all = append(all, x+y+z)
			}
		}
	}
	for i := 0; i+1 < len(data); i += 2 {
		path := all[int(data[i])%len(all)]
		if !seen[path] {
			seen[path] = true
			entries = append(entries, sandbox.Entry{Path: path, Access: sandbox.Access(data[i+1] % 3), Dir: true})
		}
	}
	return entries, all
}

func mountedAccess(list []sandbox.Entry, path string) sandbox.Access {
	got := sandbox.AccessNone
	for _, m := range list {
		if sandbox.Within(m.Path, path) {
			got = m.Access
		}
	}
	return got
}

func mountedAt(list []sandbox.Entry, path string) bool {
	for _, m := range list {
		if m.Path == path {
			return true
		}
	}
	return false
}

func entryAccess(entries []sandbox.Entry, path string) sandbox.Access {
	got, longest := sandbox.AccessNone, 0
	for _, e := range entries {
		if sandbox.Within(e.Path, path) && len(e.Path) > longest {
			got, longest = e.Access, len(e.Path)
		}
	}
	return got
}

func holdsProtected(entries []sandbox.Entry, path string) bool {
	for _, e := range entries {
		if e.Access != sandbox.AccessWrite && entryAccess(entries, filepath.Dir(e.Path)) != e.Access && e.Path != path && sandbox.Within(path, e.Path) {
			return true
		}
	}
	return false
}
