package sandbox

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Origin is the variable that tells a hone that works in a copy of a tree which tree that is.
const Origin = "HONE_ORIGIN"

// FindProgram returns the path of a program in the PATH of an environment. hone itself runs such
// a program outside of all walls, so writable names what commands may write, such as the tree: a
// program there, or in the [Origin] of the environment, is skipped, under whatever name PATH or a symlink
// gives it, because a command could have put it there. So are entries of PATH that are not absolute.
// Without writable the program is the user's own, and may lie anywhere. The error is [exec.ErrNotFound].
func FindProgram(name string, env []string, writable ...string) (string, error) {
	writable = withOrigin(env, writable)
	endings := []string{""}
	if runtime.GOOS == "windows" {
		endings = append(endings, strings.Split(cmp.Or(EnvValue(env, "PATHEXT"), ".COM;.EXE;.BAT;.CMD"), ";")...)
	}
	commands := reachOf(writable)
	for _, dir := range ownDirs(env, nil) {
		for _, ending := range endings {
			path := filepath.Join(dir, name+ending)
			if IsProgram(path) && !commands.has(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// OwnEnviron returns an environment for a program that hone itself runs: its PATH has only the
// directories in which [FindProgram] looks, for what the program starts in turn.
func OwnEnviron(env []string, writable ...string) []string {
	path := strings.Join(ownDirs(env, withOrigin(env, writable)), string(filepath.ListSeparator))
	// An empty PATH would mean the working directory.
	return append(CleanEnv(env, []string{"PATH"}), "PATH="+cmp.Or(path, os.DevNull))
}

func withOrigin(env, writable []string) []string {
	if len(writable) == 0 {
		return nil
	}
	return append(slices.Clip(writable), EnvValue(env, Origin))
}

func ownDirs(env, writable []string) []string {
	commands := reachOf(writable)
	return slices.DeleteFunc(filepath.SplitList(EnvValue(env, "PATH")), func(dir string) bool {
		return !filepath.IsAbs(dir) || commands.has(dir)
	})
}

// reach are directories that commands may write. They are compared as files, because a directory
// has other names where case does not matter, and below mounts.
type reach struct {
	dirs  []fs.FileInfo
	asked map[string]bool // whether a path is one of them
}

func reachOf(dirs []string) reach {
	r := reach{asked: map[string]bool{}}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil {
			r.dirs = append(r.dirs, info)
		}
	}
	return r
}

// has reports whether a path, or a symlink on the way to its file, lies in one of the directories.
func (r reach) has(path string) bool {
	if len(r.dirs) == 0 {
		return false
	}
	for range mostLinks {
		path = filepath.Clean(path)
		for at := path; ; at = filepath.Dir(at) {
			if r.is(at) {
				return true
			}
			if at == filepath.Dir(at) {
				break
			}
		}
		link, target, err := firstLink(path)
		if err != nil || link == "" {
			return false
		}
		path = resolved(path, link, target)
	}
	return true
}

func (r reach) is(path string) bool {
	is, ok := r.asked[path]
	if !ok {
		info, err := os.Stat(path)
		is = err == nil && slices.ContainsFunc(r.dirs, func(dir fs.FileInfo) bool { return os.SameFile(dir, info) })
		r.asked[path] = is
	}
	return is
}

// IsProgram reports whether a path leads to a file that can be run.
func IsProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0)
}
