package prove

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// Conditions returns a digest of what the result of [Wall] depends on: this
// program and the wall's own, the kernel since it was booted, and what the system
// allows this user. While it is the same, another proof would have the same result.
func Conditions(kind sandbox.Wall, tree string) (string, error) {
	programs := []string{"/proc/self/exe"}
	if kind == sandbox.Bubblewrap || kind == sandbox.Firejail {
		program, err := sandbox.FindProgram(string(kind), os.Environ(), tree)
		if err != nil {
			return "", err
		}
		programs = append(programs, program)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	groups, err := os.Getgroups()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %d %d %d %v\n", kind, boot, os.Geteuid(), os.Getuid(), os.Getegid(), groups)
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		id, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, id)
	}
	for _, program := range programs {
		var st unix.Stat_t
		if err := unix.Stat(program, &st); err != nil {
			return "", &fs.PathError{Op: "stat", Path: program, Err: err}
		}
		fmt.Fprintln(h, st.Dev, st.Ino, st.Size, st.Mode, st.Ctim.Nano())
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(status)) {
		if slices.ContainsFunc([]string{"Cap", "NoNewPrivs", "Seccomp"}, func(name string) bool { return strings.HasPrefix(line, name) }) {
			fmt.Fprint(h, line)
		}
	}
	for _, file := range settings() {
		value, _ := os.ReadFile(file) // a system that lacks it is another condition
		fmt.Fprintf(h, "%s %q\n", file, value)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func settings() []string {
	files := []string{"/proc/self/attr/current", "/sys/kernel/security/lsm", "/proc/sys/kernel/yama/ptrace_scope"}
	for _, pattern := range []string{"/proc/sys/user/max_*_namespaces", "/proc/sys/kernel/*userns*", "/proc/sys/kernel/seccomp/*", "/proc/sys/kernel/apparmor_*"} {
		found, _ := filepath.Glob(pattern) // the patterns are valid
		files = append(files, found...)
	}
	return files
}
