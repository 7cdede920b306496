package wall

import (
	"os"
	"slices"

	"hone/sandbox"
)

// bwrapArgs returns the command line with which bubblewrap (0.4 or later) shows the entries and
// runs the supervisor as process 1, which inherits descriptors. Paths may contain any character.
//
// If entries lie below /tmp, /tmp is empty for each command: in the policy's directory for it, an
// earlier command could have left a symlink where they are mounted.
func bwrapArgs(program string, p sandbox.Policy, entries []sandbox.Entry, supervisor []string) ([]string, error) {
	args := []string{program, "--unshare-all"}
	if p.Net {
		args = append(args, "--share-net")
	}
	args = append(args, "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--chdir", "/")
	list := mounts(entries)
	rooted := len(list) > 0 && list[0].Path == "/"
	if rooted {
		args, list = append(args, bwrapMount(list[0])...), list[1:]
	}
	args = append(args, "--proc", "/proc")
	for _, path := range secretProc() {
		args = append(args, "--ro-bind", os.DevNull, path)
	}
	args = append(args, "--dev", "/dev", "--tmpfs", "/dev/shm")
	below := func(e sandbox.Entry) bool { return e.Path != "/tmp" && sandbox.Within("/tmp", e.Path) }
	if p.Tmp == "" || slices.ContainsFunc(list, below) {
		args = append(args, "--tmpfs", "/tmp")
	} else {
		args = append(args, "--bind", p.Tmp, "/tmp")
	}
	var last []string // nothing can be mounted in these afterwards
	for _, e := range list {
		args = append(args, bwrapMount(e)...)
		if e.Access == sandbox.AccessNone && e.Dir {
			last = append(last, "--remount-ro", e.Path)
		}
	}
	last = append(last, "--remount-ro", "/dev", "--remount-ro", "/proc")
	if !rooted {
		last = append(last, "--remount-ro", "/")
	}
	return slices.Concat(args, last, []string{"--"}, supervisor), nil
}

func bwrapMount(e sandbox.Entry) []string {
	switch {
	case e.Link != "":
		return []string{"--symlink", e.Link, e.Path}
	case e.Access == sandbox.AccessNone && e.Dir:
		return []string{"--tmpfs", e.Path}
	case e.Access == sandbox.AccessNone:
		// A device that is mounted without --dev-bind cannot be opened.
		return []string{"--ro-bind", os.DevNull, e.Path}
	case sandbox.Within("/dev", e.Path):
		return []string{"--dev-bind", e.Path, e.Path}
	case e.Access == sandbox.AccessRead:
		return []string{"--ro-bind", e.Path, e.Path}
	}
	return []string{"--bind", e.Path, e.Path}
}
