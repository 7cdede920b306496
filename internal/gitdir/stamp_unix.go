//go:build unix

package gitdir

import "golang.org/x/sys/unix"

func stampOf(path string) (s stamp, isDir bool, err error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return s, false, err
	}
	return stamp{uint64(st.Dev), st.Ino, st.Ctim.Nano()}, st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}
