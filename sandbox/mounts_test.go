//go:build unix

package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMounts(t *testing.T) {
	dir := func(path string, a access) entry { return entry{Path: path, Access: a, Dir: true} }
	file := func(path string, a access) entry { return entry{Path: path, Access: a} }
	rw := func(path string) mount { return mount{Path: path, Kind: mountWrite, Dir: true} }
	ro := func(path string) mount { return mount{Path: path, Kind: mountRead, Dir: true} }
	none := []mount{}
	for name, c := range map[string]struct {
		entries []entry
		want    []mount
	}{
		"nothing":           {nil, none},
		"folders":           {[]entry{dir("/usr", read), dir("/w", write)}, []mount{ro("/usr"), rw("/w")}},
		"a file":            {[]entry{file("/etc/hosts", read)}, []mount{{Path: "/etc/hosts", Kind: mountRead}}},
		"the whole machine": {[]entry{dir("/", read), dir("/w", write)}, []mount{ro("/"), rw("/w")}},
		"the root, written": {[]entry{dir("/", write), dir("/w/a", read)}, []mount{rw("/"), rw("/w"), ro("/w/a")}},
		"the same below":    {[]entry{dir("/usr", read), dir("/usr/lib", read), dir("/w", write), dir("/w/a/b", write)}, []mount{ro("/usr"), rw("/w")}},
		"a name that begins alike": {
			[]entry{dir("/w", write), dir("/w-other", write), file("/w-other/x", read)},
			[]mount{rw("/w"), rw("/w-other"), {Path: "/w-other/x", Kind: mountRead}},
		},
		"a protected file at the top": {
			[]entry{dir("/w", write), file("/w/abl.config.sh", read)},
			[]mount{rw("/w"), {Path: "/w/abl.config.sh", Kind: mountRead}},
		},
		"protected files, whose folders are held in place": {
			[]entry{dir("/w", write), file("/w/.git/config", read), dir("/w/.git/hooks", read), file("/w/a/b/.git/config", read)},
			[]mount{
				rw("/w"), rw("/w/.git"), {Path: "/w/.git/config", Kind: mountRead}, ro("/w/.git/hooks"),
				rw("/w/a"), rw("/w/a/b"), rw("/w/a/b/.git"), {Path: "/w/a/b/.git/config", Kind: mountRead},
			},
		},
		"an entry that is also held in place": {
			[]entry{dir("/w", write), dir("/w/a", write), file("/w/a/x", read)},
			[]mount{rw("/w"), rw("/w/a"), {Path: "/w/a/x", Kind: mountRead}},
		},
		"writable in read-only in writable": {
			[]entry{dir("/w", write), dir("/w/a/b", read), dir("/w/a/b/c/d", write), file("/w/a/b/c/d/e/f", read)},
			[]mount{
				rw("/w"), rw("/w/a"), ro("/w/a/b"), rw("/w/a/b/c/d"), rw("/w/a/b/c/d/e"),
				{Path: "/w/a/b/c/d/e/f", Kind: mountRead},
			},
		},
		"hidden, and not held in place": {
			[]entry{dir("/w", write), file("/w/a/.env", hide), dir("/w/b/keys", hide)},
			[]mount{rw("/w"), {Path: "/w/a/.env", Kind: mountHideFile}, {Path: "/w/b/keys", Kind: mountHideDir, Dir: true}},
		},
		"hidden, where nothing is":   {[]entry{dir("/home/u/.ssh", hide), dir("/usr", read)}, []mount{ro("/usr")}},
		"hidden, in what is hidden":  {[]entry{dir("/usr", read), dir("/usr/a", hide), dir("/usr/a/b", hide)}, []mount{ro("/usr"), {Path: "/usr/a", Kind: mountHideDir, Dir: true}}},
		"absent":                     {[]entry{dir("/w", write), {Path: "/w/.hone", Access: read, Absent: true}, {Path: "/opt", Access: read, Absent: true}}, []mount{rw("/w")}},
		"in an absent one":           {[]entry{{Path: "/w", Access: write, Absent: true}, file("/w/x", hide)}, none},
		"a link where nothing is":    {[]entry{{Path: "/bin", Access: read, Link: "/usr/bin"}, dir("/usr", read)}, []mount{{Path: "/bin", Kind: mountLink, Target: "/usr/bin"}, ro("/usr")}},
		"a link that is seen anyway": {[]entry{dir("/usr", read), {Path: "/usr/tmp", Access: read, Link: "/var"}, {Path: "/w/l", Access: read, Link: "/w/x"}, dir("/w", write)}, []mount{ro("/usr"), rw("/w")}},
		"read in hidden in written, held in place all the way": {
			[]entry{dir("/w", write), dir("/w/a/h", hide), {Path: "/w/a/h/l", Access: read, Link: "/w/a/h/r"}, dir("/w/a/h/r", read)},
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

// FuzzMounts holds what mounts leaves out to what it stands for: at every path
// the last mount that holds it gives the access of the longest entry.
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
			if movable := mountedAccess(list, path) == write && !mountedAt(list, path); movable && holdsProtected(entries, path) {
				t.Errorf("%s holds what is protected, and could be renamed\n%+v\n%+v", path, entries, list)
			}
		}
	})
}

// fuzzedEntries are folders of up to three names, each a or b, and all paths
// that may be asked about.
func fuzzedEntries(data []byte) (entries []entry, all []string) {
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
			entries = append(entries, entry{Path: path, Access: access(data[i+1] % 3), Dir: true})
		}
	}
	return entries, all
}

func mountedAccess(list []mount, path string) access {
	got := hide
	for _, m := range list {
		if holds(m.Path, path) {
			got = map[mountKind]access{mountRead: read, mountWrite: write}[m.Kind]
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

func entryAccess(entries []entry, path string) access {
	got, longest := hide, 0
	for _, e := range entries {
		if holds(e.Path, path) && len(e.Path) > longest {
			got, longest = e.Access, len(e.Path)
		}
	}
	return got
}

func holdsProtected(entries []entry, path string) bool {
	for _, e := range entries {
		if e.Access == read && e.Path != path && holds(path, e.Path) {
			return true
		}
	}
	return false
}
