package wall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

// The walls of bubblewrap.
//
// They guard what the hidden wall guards, with a /dev of harmless devices, and
// end when the process that started bubblewrap ends.
//
// What they do not guard:
//   - A hidden path in a visible directory is replaced by a device that cannot
//     be opened, or by an empty directory. A command can see that it exists, and
//     git add fails on such a device unless git ignores the file.
//   - Mounts cannot protect a symlink or a file that does not exist: a command
//     that may write its directory can change it.
//   - If entries lie below /tmp and Policy.Tmp is set, their mount points and
//     the symlinks to them are made in Policy.Tmp.
//   - Commands can read what the kernel shows about itself in /proc, and can use
//     unix sockets in visible directories, even read-only ones.
//   - If bubblewrap is setuid and user namespaces are off, it runs as root until
//     the walls are built.
//
// The keeper adds Landlock, seccomp and the limits.

func bwrapKind() kind {
	return kind{
		level: sandbox.LevelHidden, namespaces: true, mounted: true,
		args:     bwrapArgs,
		install:  "apt install bubblewrap (dnf, pacman and apk have the same package)",
		restrain: behindMounts,
		advice:   func(s spec) (likely, next string) { return namespaceAdvice(s.Wrapper[0]) },
	}
}

// readOnlyProc are the parts of /proc that control the whole machine. Only
// their owner guards them, which is root, even without capabilities.
var readOnlyProc = [...]string{"/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/mtrr"}

// maxBwrapArgs is how many arguments bubblewrap accepts.
const maxBwrapArgs = 9000

// The keeper runs as process 1 and inherits descriptors. Paths may contain any character. It needs bubblewrap 0.4.
func bwrapArgs(program string, p sandbox.Policy, entries []sandbox.Entry, keeper []string) ([]string, error) {
	list, err := underTmp(p.Tmp, mounts(entries))
	if err != nil {
		return nil, err
	}
	args := []string{program, "--unshare-all"}
	if p.Net {
		args = append(args, "--share-net")
	}
	args = append(args, "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--chdir", "/")
	rooted := len(list) > 0 && list[0].Path == "/"
	if rooted {
		args, list = append(args, bwrapMount(list[0])...), list[1:]
	}
	args = append(args, bwrapSystem(p.Tmp)...)
	var last []string // nothing can be mounted in these afterwards
	for _, m := range list {
		args = append(args, bwrapMount(m)...)
		if m.Kind == mountHideDir {
			last = append(last, "--remount-ro", m.Path)
		}
	}
	last = append(last, "--remount-ro", "/dev")
	if !rooted {
		last = append(last, "--remount-ro", "/")
	}
	args = slices.Concat(args, last, []string{"--"}, keeper)
	if len(args) > maxBwrapArgs {
		return nil, &sandbox.WallError{Wall: sandbox.Bubblewrap, Reason: fmt.Sprintf("it accepts at most %d arguments, and the policy's %d paths need %d", maxBwrapArgs, len(list), len(args)),
			Next: "hide directories instead of single files, or use the hidden wall"}
	}
	return args, nil
}

func bwrapSystem(tmp string) []string {
	args := []string{"--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"}
	for _, path := range readOnlyProc {
		args = append(args, "--ro-bind-try", path, path)
	}
	args = append(args, "--dev", "/dev", "--tmpfs", "/dev/shm")
	if tmp == "" {
		return append(args, "--tmpfs", "/tmp")
	}
	return append(args, "--bind", tmp, "/tmp")
}

func bwrapMount(m mount) []string {
	switch {
	case m.Kind == mountLink:
		return []string{"--symlink", m.Target, m.Path}
	case m.Kind == mountHideDir:
		return []string{"--tmpfs", m.Path}
	case m.Kind == mountHideFile:
		// A device that is mounted without --dev-bind cannot be opened.
		return []string{"--ro-bind", os.DevNull, m.Path}
	case sandbox.Within("/dev", m.Path):
		return []string{"--dev-bind", m.Path, m.Path}
	case m.Kind == mountRead:
		return []string{"--ro-bind", m.Path, m.Path}
	}
	return []string{"--bind", m.Path, m.Path}
}

// underTmp refuses mounts below /tmp that a symlink in the directory for /tmp would
// redirect. It returns the mounts without the symlinks that an earlier command left there.
func underTmp(tmp string, list []mount) (rest []mount, err error) {
	for _, m := range list {
		point := ""
		if tmp != "" && m.Path != "/tmp" && sandbox.Within("/tmp", m.Path) {
			point = filepath.Join(tmp, strings.TrimPrefix(m.Path, "/tmp"))
		}
		if target, err := os.Readlink(point); err == nil && m.Kind == mountLink && target == m.Target {
			point = filepath.Dir(point)
		} else {
			rest = append(rest, m)
		}
		for ; len(point) > len(filepath.Clean(tmp)); point = filepath.Dir(point) {
			info, err := os.Lstat(point)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			if err == nil && info.Mode()&fs.ModeSymlink != 0 {
				return nil, &sandbox.WallError{Wall: sandbox.Bubblewrap, Reason: fmt.Sprintf("%s becomes /tmp, and there is a symlink at %s where %s must be mounted", tmp, point, m.Path), Next: "remove " + point}
			}
		}
	}
	return rest, nil
}

func namespaceAdvice(program string) (likely, next string) {
	if info, err := os.Stat(program); err == nil && info.Mode()&fs.ModeSetuid != 0 {
		return "it is setuid and still cannot build walls, as in a container", "use the landlock wall"
	}
	for _, one := range [...]struct {
		file, value  string
		root         bool // it holds for root as well
		likely, next string
	}{
		{"user/max_user_namespaces", "0", true, "user namespaces are switched off", "sysctl user.max_user_namespaces=15000"},
		{"kernel/unprivileged_userns_clone", "0", false, "only root may make user namespaces, and bwrap is not setuid", "sysctl kernel.unprivileged_userns_clone=1"},
		{"kernel/apparmor_restrict_unprivileged_userns", "1", false, "AppArmor denies user namespaces to programs without a profile", "give bwrap an AppArmor profile that allows userns"},
	} {
		text, err := os.ReadFile("/proc/sys/" + one.file)
		if err == nil && strings.TrimSpace(string(text)) == one.value && (one.root || os.Getuid() != 0) {
			return one.likely, one.next + ", or use the landlock wall"
		}
	}
	return "it cannot build walls here, as in a container that denies namespaces or mounts", "use the landlock wall"
}
