package wall

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// An overlay shows the files of its lower directory and those of its upper one,
// which receives all changes. Upper directories are in Policy.Layers, in a
// directory for each command that runs at the same time: LAYERS/0, LAYERS/1 and so
// on. The kernel leaves undefined what happens if two mounts share an upper
// directory, so a command locks the first of them that no other one uses. Commands
// that run one after the other all use LAYERS/0, and each finds what those before
// it left.
//
// Commands cannot reach these directories, only change files through the overlay.
// So a command can spoil the caches of its own run, and nothing else.

// overlay adds the entries of the policy's overlays whose directories exist and are
// this user's, in place of the readable and writable paths in these: mounted there, they would be the
// files outside.
func (w *Walls) overlay() error {
	for _, o := range w.spec.Policy.Overlays {
		path, err := filepath.EvalSymlinks(o.Path)
		lower, missing := filepath.EvalSymlinks(o.Lower)
		if err = errors.Join(err, missing); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the policy of the walls: %w", err)
		}
		// The kernel cannot copy the files of others to an overlay, because these users do not exist behind the walls.
		var info unix.Stat_t
		if unix.Stat(lower, &info) != nil || info.Uid != uint32(os.Getuid()) || info.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		w.spec.Entries = slices.DeleteFunc(w.spec.Entries, func(e sandbox.Entry) bool {
			return e.Access != sandbox.AccessNone && e.Link == "" && sandbox.Within(path, e.Path)
		})
		w.spec.Entries = append(w.spec.Entries, sandbox.Entry{Path: path, Access: sandbox.AccessWrite, Dir: true, Lower: lower})
		w.overlays = append(w.overlays, o)
	}
	return nil
}

// Env returns the environment of the policy, with the variables of the overlays that commands find.
func (w *Walls) Env() []string {
	env := slices.Clone(w.spec.Policy.Env)
	for _, o := range w.overlays {
		env = append(env, o.Env...)
	}
	return env
}

func (w *Walls) lockLayers(s spec) (_ spec, done func(), err error) {
	if len(w.overlays) == 0 {
		return s, func() {}, nil
	}
	for n := 0; ; n++ {
		s.Policy.Layers = filepath.Join(w.spec.Policy.Layers, strconv.Itoa(n))
		if err := os.MkdirAll(s.Policy.Layers, 0o700); err != nil {
			return s, nil, err
		}
		unlock, err := sandbox.Lock(s.Policy.Layers)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err == nil {
			for _, dir := range s.layers() {
				err = errors.Join(err, os.MkdirAll(filepath.Join(dir, upperName), 0o700), os.MkdirAll(filepath.Join(dir, workName), 0o700))
			}
		}
		if err != nil {
			if unlock != nil {
				unlock()
			}
			return s, nil, err
		}
		return s, func() {
			// The kernel leaves a directory of unmounted overlays that only root can open, and files in it.
			for _, dir := range s.layers() {
				work := filepath.Join(dir, workName)
				_ = os.Chmod(filepath.Join(work, "work"), 0o700)
				_ = os.RemoveAll(work)
			}
			unlock()
		}, nil
	}
}

func (s spec) layers() (dirs []string) {
	for _, e := range s.Entries {
		if e.Lower != "" {
			dirs = append(dirs, layerOf(s.Policy.Layers, e.Path))
		}
	}
	return dirs
}

// The directories of an overlay: its changes, and one for the kernel.
const upperName, workName = "upper", "work"

func layerOf(layers, path string) string {
	return filepath.Join(layers, fmt.Sprintf("%x", sha256.Sum256([]byte(path)))[:16])
}

// The overlay is not mounted. The kernel knows the directories by descriptors: as options, paths must be short and need
// escapes.
func newOverlay(lower, layer string) (int, error) {
	options := []string{"userxattr", "", "index", "off"}
	for key, path := range map[string]string{"lowerdir": lower, "upperdir": filepath.Join(layer, upperName), "workdir": filepath.Join(layer, workName)} {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			return -1, &os.PathError{Op: "open", Path: path, Err: err}
		}
		defer unix.Close(fd)
		options = append(options, key, "/proc/self/fd/"+strconv.Itoa(fd))
	}
	fd, err := newFS("overlay", 0, options...)
	if err != nil {
		return -1, fmt.Errorf("make an overlay: %w", err)
	}
	return fd, nil
}
