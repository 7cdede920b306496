//go:build unix

package wall

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/sandbox"
)

func TestMounts(t *testing.T) {
	dir := func(path string, a sandbox.Access) sandbox.Entry {
		return sandbox.Entry{Path: path, Access: a, Dir: true}
	}
	file := func(path string, a sandbox.Access) sandbox.Entry { return sandbox.Entry{Path: path, Access: a} }
	rw := func(path string) mount { return mount{Path: path, Kind: mountWrite, Dir: true} }
	ro := func(path string) mount { return mount{Path: path, Kind: mountRead, Dir: true} }
	none := []mount{}
	for name, c := range map[string]struct {
		entries []sandbox.Entry
		want    []mount
	}{
		"nothing":           {nil, none},
		"folders":           {[]sandbox.Entry{dir("/usr", sandbox.AccessRead), dir("/w", sandbox.AccessWrite)}, []mount{ro("/usr"), rw("/w")}},
		"a file":            {[]sandbox.Entry{file("/etc/hosts", sandbox.AccessRead)}, []mount{{Path: "/etc/hosts", Kind: mountRead}}},
		"the whole machine": {[]sandbox.Entry{dir("/", sandbox.AccessRead), dir("/w", sandbox.AccessWrite)}, []mount{ro("/"), rw("/w")}},
		"the root, written": {[]sandbox.Entry{dir("/", sandbox.AccessWrite), dir("/w/a", sandbox.AccessRead)}, []mount{rw("/"), rw("/w"), ro("/w/a")}},
		"the same below":    {[]sandbox.Entry{dir("/usr", sandbox.AccessRead), dir("/usr/lib", sandbox.AccessRead), dir("/w", sandbox.AccessWrite), dir("/w/a/b", sandbox.AccessWrite)}, []mount{ro("/usr"), rw("/w")}},
		"a name that begins alike": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), dir("/w-other", sandbox.AccessWrite), file("/w-other/x", sandbox.AccessRead)},
			[]mount{rw("/w"), rw("/w-other"), {Path: "/w-other/x", Kind: mountRead}},
		},
		"a protected file at the top": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), file("/w/abl.config.sh", sandbox.AccessRead)},
			[]mount{rw("/w"), {Path: "/w/abl.config.sh", Kind: mountRead}},
		},
		"protected files, whose folders are held in place": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), file("/w/.git/config", sandbox.AccessRead), dir("/w/.git/hooks", sandbox.AccessRead), file("/w/a/b/.git/config", sandbox.AccessRead)},
			[]mount{
				rw("/w"), rw("/w/.git"), {Path: "/w/.git/config", Kind: mountRead}, ro("/w/.git/hooks"),
				rw("/w/a"), rw("/w/a/b"), rw("/w/a/b/.git"), {Path: "/w/a/b/.git/config", Kind: mountRead},
			},
		},
		"an entry that is also held in place": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), dir("/w/a", sandbox.AccessWrite), file("/w/a/x", sandbox.AccessRead)},
			[]mount{rw("/w"), rw("/w/a"), {Path: "/w/a/x", Kind: mountRead}},
		},
		"writable in read-only in writable": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), dir("/w/a/b", sandbox.AccessRead), dir("/w/a/b/c/d", sandbox.AccessWrite), file("/w/a/b/c/d/e/f", sandbox.AccessRead)},
			[]mount{
				rw("/w"), rw("/w/a"), ro("/w/a/b"), rw("/w/a/b/c/d"), rw("/w/a/b/c/d/e"),
				{Path: "/w/a/b/c/d/e/f", Kind: mountRead},
			},
		},
		"an overlay, whose folder is held in place": {
			[]sandbox.Entry{dir("/h", sandbox.AccessWrite), {Path: "/h/.npm/_cacache", Access: sandbox.AccessWrite, Dir: true, Lower: "/u/_cacache"}},
			[]mount{rw("/h"), rw("/h/.npm"), {Path: "/h/.npm/_cacache", Kind: mountOverlay, Dir: true, Lower: "/u/_cacache"}},
		},
		"an overlay at its own path, with a hidden file": {
			[]sandbox.Entry{dir("/u", sandbox.AccessRead), {Path: "/u/mod", Access: sandbox.AccessWrite, Dir: true, Lower: "/u/mod"}, file("/u/mod/key", sandbox.AccessNone)},
			[]mount{ro("/u"), {Path: "/u/mod", Kind: mountOverlay, Dir: true, Lower: "/u/mod"}, {Path: "/u/mod/key", Kind: mountHideFile}},
		},
		"hidden, and not held in place": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), file("/w/a/.env", sandbox.AccessNone), dir("/w/b/keys", sandbox.AccessNone)},
			[]mount{rw("/w"), {Path: "/w/a/.env", Kind: mountHideFile}, {Path: "/w/b/keys", Kind: mountHideDir, Dir: true}},
		},
		"hidden, where nothing is":   {[]sandbox.Entry{dir("/home/u/.ssh", sandbox.AccessNone), dir("/usr", sandbox.AccessRead)}, []mount{ro("/usr")}},
		"hidden, in what is hidden":  {[]sandbox.Entry{dir("/usr", sandbox.AccessRead), dir("/usr/a", sandbox.AccessNone), dir("/usr/a/b", sandbox.AccessNone)}, []mount{ro("/usr"), {Path: "/usr/a", Kind: mountHideDir, Dir: true}}},
		"absent":                     {[]sandbox.Entry{dir("/w", sandbox.AccessWrite), {Path: "/w/.hone", Access: sandbox.AccessRead, Absent: true}, {Path: "/opt", Access: sandbox.AccessRead, Absent: true}}, []mount{rw("/w")}},
		"in an absent one":           {[]sandbox.Entry{{Path: "/w", Access: sandbox.AccessWrite, Absent: true}, file("/w/x", sandbox.AccessNone)}, none},
		"a link where nothing is":    {[]sandbox.Entry{{Path: "/bin", Access: sandbox.AccessRead, Link: "/usr/bin"}, dir("/usr", sandbox.AccessRead)}, []mount{{Path: "/bin", Kind: mountLink, Target: "/usr/bin"}, ro("/usr")}},
		"a link that is seen anyway": {[]sandbox.Entry{dir("/usr", sandbox.AccessRead), {Path: "/usr/tmp", Access: sandbox.AccessRead, Link: "/var"}, {Path: "/w/l", Access: sandbox.AccessRead, Link: "/w/x"}, dir("/w", sandbox.AccessWrite)}, []mount{ro("/usr"), rw("/w")}},
		"read in hidden in written, held in place all the way": {
			[]sandbox.Entry{dir("/w", sandbox.AccessWrite), dir("/w/a/h", sandbox.AccessNone), {Path: "/w/a/h/l", Access: sandbox.AccessRead, Link: "/w/a/h/r"}, dir("/w/a/h/r", sandbox.AccessRead)},
			[]mount{rw("/w"), rw("/w/a"), {Path: "/w/a/h", Kind: mountHideDir, Dir: true}, {Path: "/w/a/h/l", Kind: mountLink, Target: "/w/a/h/r"}, ro("/w/a/h/r")},
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

func mountedAccess(list []mount, path string) sandbox.Access {
	got := sandbox.AccessNone
	for _, m := range list {
		if sandbox.Within(m.Path, path) {
			got = map[mountKind]sandbox.Access{mountRead: sandbox.AccessRead, mountWrite: sandbox.AccessWrite}[m.Kind]
		}
	}
	return got
}

func mountedAt(list []mount, path string) bool {
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
		if e.Access == sandbox.AccessRead && e.Path != path && sandbox.Within(path, e.Path) {
			return true
		}
	}
	return false
}
