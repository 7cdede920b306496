package kernel

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/runtest"
)

func TestLandlockHandlesWhatAnABIKnows(t *testing.T) {
	const (
		first  = 1<<13 - 1
		refer  = first | unix.LANDLOCK_ACCESS_FS_REFER
		trunc  = refer | unix.LANDLOCK_ACCESS_FS_TRUNCATE
		device = trunc | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
		unixes = device | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
		scopes = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		tcp    = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	)
	for _, test := range []struct {
		abi                int
		files, net, scoped uint64
	}{
		{1, first, 0, 0},
		{2, refer, 0, 0},
		{3, trunc, 0, 0},
		{4, trunc, tcp, 0},
		{5, device, tcp, 0},
		{6, device, tcp, scopes},
		{8, device, tcp, scopes},
		{9, unixes, tcp, scopes},
		{10, unixes, tcp | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP, scopes},
	} {
		want := unix.LandlockRulesetAttr{Handled_access_fs: test.files, Handled_access_net: test.net, Scoped: test.scoped}
		if diff := cmp.Diff(want, handledBy(sandbox.Policy{Wall: sandbox.Landlock}, test.abi)); diff != "" {
			t.Errorf("ABI %d (-want +got):\n%s", test.abi, diff)
		}
		want.Handled_access_net = 0
		for _, p := range []sandbox.Policy{{Wall: sandbox.Hidden}, {Wall: sandbox.Hidden, Net: true}, {Wall: sandbox.Landlock, Net: true}, {Wall: sandbox.Firejail}} {
			if diff := cmp.Diff(want, handledBy(p, test.abi)); diff != "" {
				t.Errorf("ABI %d, %s (-want +got):\n%s", test.abi, p.Wall, diff)
			}
		}
	}
}

func TestGrants(t *testing.T) {
	lib := t.TempDir()
	for _, path := range []string{"a/b/secret", "a/b/open", "a/c/d", "plain"} {
		must(0, os.MkdirAll(filepath.Dir(filepath.Join(lib, path)), 0o755))
		must(0, os.WriteFile(filepath.Join(lib, path), nil, 0o644))
	}
	must(0, os.Symlink("a", filepath.Join(lib, "link")))
	const list = unix.LANDLOCK_ACCESS_FS_READ_DIR
	handled := handledBy(sandbox.Policy{Wall: sandbox.Hidden}, 7).Handled_access_fs
	entries := []sandbox.Entry{
		{Path: "/w", Access: sandbox.AccessWrite, Dir: true},
		{Path: "/w/.env", Access: sandbox.AccessNone},
		{Path: "/link", Access: sandbox.AccessRead, Link: "/w"},
		{Path: "/gone", Access: sandbox.AccessRead, Absent: true},
		{Path: lib, Access: sandbox.AccessRead, Dir: true},
		{Path: lib + "/a/b/secret", Access: sandbox.AccessNone},
		{Path: lib + "/plain2", Access: sandbox.AccessNone, Absent: true},
	}
	got := map[string]uint64{}
	all, said := grants(entries, handled)
	for _, g := range all {
		got[strings.TrimPrefix(g.path, lib)] = g.rights
	}
	want := map[string]uint64{
		"/w":        handled &^ (unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK),
		"":          list,
		"/a":        list,
		"/a/b":      list,
		"/a/b/open": rightsToRead,
		"/a/c":      rightsToRead,
		"/plain":    rightsToRead,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(said) != 1 || !strings.Contains(said[0], "/w/.env") {
		t.Errorf("said %q", said)
	}
}

// A directory with too many entries is granted as a whole, and the grade reports it.
func TestGrantsAreBounded(t *testing.T) {
	lib := t.TempDir()
	for i := range maxAround + 1 {
		must(0, os.WriteFile(filepath.Join(lib, fmt.Sprint(i)), nil, 0o644))
	}
	entries := []sandbox.Entry{{Path: lib, Access: sandbox.AccessRead, Dir: true}, {Path: lib + "/7", Access: sandbox.AccessNone}}
	got, said := grants(entries, 1<<13-1)
	if len(got) != 1 || got[0] != (grant{lib, rightsToRead}) {
		t.Errorf("%d grants, the first %+v", len(got), got[0])
	}
	if len(said) != 1 || !strings.Contains(said[0], lib+"/7") {
		t.Errorf("said %q", said)
	}
}

// A hidden path in a readable directory cannot be opened.
func TestLandlockHoldsWhatIsHiddenBelowRead(t *testing.T) {
	requireLandlock(t, 1)
	for _, u := range runtest.Users() {
		t.Run(u.Name, func(t *testing.T) {
			lib := runtest.OpenDir(t, u)
			must(0, os.Mkdir(lib+"/keys", 0o755))
			for _, name := range []string{"/credentials", "/open", "/keys/one"} {
				must(0, os.WriteFile(lib+name, []byte(name), 0o644))
			}
			r := landlocked(sandbox.Entry{Path: lib, Access: sandbox.AccessRead, Dir: true}, sandbox.Entry{Path: lib + "/credentials", Access: sandbox.AccessNone}, sandbox.Entry{Path: lib + "/keys", Access: sandbox.AccessNone, Dir: true})
			got := map[string]bool{}
			for _, name := range []string{"/credentials", "/open", "/keys/one"} {
				out := restrainAs(t, u, runtest.TestBinary(t, u), restrained{Under: r, Argv: []string{"/usr/bin/cat", lib + name}, Dir: "/"})
				if out.Fail != "" {
					t.Fatalf("%+v", out)
				}
				got[name] = out.Exit == 0 && out.Output == name
			}
			if want := map[string]bool{"/credentials": false, "/open": true, "/keys/one": false}; !maps.Equal(got, want) {
				t.Errorf("readable: %v", got)
			}
		})
	}
}

// A path that became a symlink after the policy was read permits nothing.
func TestLandlockFollowsNoLink(t *testing.T) {
	requireLandlock(t, 1)
	u := runtest.Users()[0]
	dir, secret := runtest.OpenDir(t, u), runtest.OpenDir(t, u)
	must(0, os.WriteFile(secret+"/file", []byte("secret"), 0o644))
	must(0, os.Symlink(secret, dir+"/lib"))
	r := landlocked(sandbox.Entry{Path: dir + "/lib", Access: sandbox.AccessRead, Dir: true})
	out := restrainAs(t, u, runtest.TestBinary(t, u), restrained{Under: r, Argv: []string{"/usr/bin/cat", secret + "/file"}, Dir: "/"})
	if out.Fail != "" || out.Exit == 0 {
		t.Errorf("%+v", out)
	}
}
